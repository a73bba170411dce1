"""Run by `test_kill_moments.py`: trains in child processes, each of which ends itself with SIGKILL at a named moment.

torch is imported once, here; the children are forks. Usage: kill_moments.py PICTURES FOLDER FLAG...
"""

import contextlib
import os
import signal
import sys
from pathlib import Path
from unittest import mock

import tusk.io
from tusk.cli import main as cli
from tusk.data.loader import Loader
from tusk.training import checkpoint, run
from tusk.training.logging import RunLog
from tusk.training.prototypes import PrototypeTraining
from tusk.training.trainer import Trainer

_count = 0


def die(number):
    """Ends the process at the `number`-th call."""
    global _count
    _count += 1
    if _count == number:
        os.kill(os.getpid(), signal.SIGKILL)


def before(owner, name, number, where=lambda *_: True):
    """Die instead of the `number`-th call of owner.name whose arguments satisfy `where`."""
    original = getattr(owner, name)

    def killing(*args, **kwargs):
        if where(*args):
            die(number)
        return original(*args, **kwargs)

    return mock.patch.object(owner, name, killing)


def after(owner, name, number, where=lambda *_: True):
    """Die right after that call."""
    original = getattr(owner, name)

    def killing(*args, **kwargs):
        result = original(*args, **kwargs)
        if where(*args):
            die(number)
        return result

    return mock.patch.object(owner, name, killing)


def half_written(name, number):
    """Die with half of the content of a file of that name in its temporary file."""
    original = tusk.io.atomic_write

    def killing(path, content):
        if path.name.startswith(name):
            path.with_name(f".{path.name}.part").write_bytes(content[: len(content) // 2])
            die(number)
        original(path, content)

    stack = contextlib.ExitStack()
    for module in (tusk.io, checkpoint, sys.modules["tusk.model.storage"], sys.modules["tusk.training.logging"]):
        stack.enter_context(mock.patch.object(module, "atomic_write", killing))
    return stack


def named(start):
    return lambda path, *_: path.name.startswith(start)


MOMENTS = {
    "before the first step": lambda: before(Trainer, "train_step", 1),
    "before loading in the first epoch": lambda: before(Loader, "__next__", 3),
    "before loading in a later epoch": lambda: before(Loader, "__next__", 14),
    "between network and prototypes": lambda: after(Trainer, "_network_step", 8),
    "between prototype steps and the log": lambda: after(Trainer, "train_step", 13),
    "at the start of the prototypes": lambda: before(PrototypeTraining, "train_step", 2),
    "after prototypes were set again": lambda: after(PrototypeTraining, "train_step", 6),
    "before the first checkpoint": lambda: before(checkpoint, "atomic_write", 1),
    "half of the tensors written": lambda: half_written("step-", 3),
    "tensors written, no manifest": lambda: after(checkpoint, "atomic_write", 2, named("step-")),
    "half of the manifest written": lambda: half_written("last", 3),
    "half of the best manifest written": lambda: half_written("best", 1),
    "best named, last not": lambda: after(checkpoint, "atomic_write", 2, named("best")),
    "before old checkpoints are removed": lambda: before(checkpoint.Checkpoints, "_remove_unused", 3),
    "after old checkpoints are removed": lambda: after(checkpoint.Checkpoints, "_remove_unused", 4),
    "before an evaluation": lambda: before(run, "validate", 1),
    "in the middle of an evaluation": lambda: before(run, "task_figures", 2),
    "after an evaluation, before its row": lambda: before(RunLog, "validation", 2),
    "half of the results written": lambda: half_written("results.csv", 2),
    "after the last step": lambda: before(run.Run, "_finish", 1),
    "half of the model written": lambda: half_written("model", 1),
    "after the model was written": lambda: after(run, "save_model", 1),
}


def child(args, moment=None):
    """-> how a fork that runs `tusk ARGS` ended: the exit code, or minus the signal."""
    process = os.fork()
    if process == 0:
        with contextlib.ExitStack() as stack:
            if moment is not None:
                stack.enter_context(MOMENTS[moment]())
            try:
                cli.main(args)
            except SystemExit as end:
                os._exit(int(end.code or 0))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    pictures, folder, flags = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    assert child(["train", pictures, *flags, "--out", str(folder / "unbroken")]) == 0
    for place, moment in enumerate(MOMENTS):
        out = str(folder / str(place))
        ended = child(["train", pictures, *flags, "--out", out], moment)
        assert ended == -signal.SIGKILL, (moment, ended)
        ended = child(["train", "--resume", out])
        assert ended == 0, (moment, ended)
        print(f"{place}\t{moment}", flush=True)
