"""Run by `test_kill_moments.py`: trains in child processes, each of which ends itself with SIGKILL at a named moment;
then one after the other that are killed at random moments. Everything is imported once, here.

Usage: kill_moments.py PICTURES FOLDER FLAG...
"""

import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from unittest import mock

import tusk.io
from tests import forks
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


def ended(args, moment=None):
    """-> how a fork that runs `tusk ARGS` ended."""
    return forks.end(forks.start(args, MOMENTS.get(moment, contextlib.nullcontext), errors="/dev/stderr"))


def at_named_moments(train, folder):
    for place, moment in enumerate(MOMENTS):
        out = str(folder / str(place))
        code = ended([*train, "--out", out], moment)
        assert code == -signal.SIGKILL, (moment, code)
        code = ended(["train", "--resume", out])
        assert code == 0, (moment, code)
        print(f"{place}\t{moment}", flush=True)


def at_random_moments(train, out, most):
    """SIGKILL at up to `most` random moments, resumed each time: mid-epoch, while saving, while validating."""
    manifest, rng, kills = out / "checkpoints" / "last.json", random.Random(0), 0
    process = forks.start([*train, "--out", str(out)], errors="/dev/stderr")
    while not is_done(process):
        before = step_of(manifest)
        # Let it get somewhere, or all kills would fall into its beginning.
        while step_of(manifest) <= before and not (out / "model.safetensors").exists() and not is_done(process):
            time.sleep(0.002)
        if kills < most:
            time.sleep(rng.uniform(0.0, 0.12))
        if kills == most or is_done(process):
            break
        os.kill(process, signal.SIGKILL)
        assert forks.end(process) in (0, -signal.SIGKILL)
        kills += 1
        process = forks.start(["train", "--resume", str(out)], errors="/dev/stderr")
    assert forks.end(process) == 0
    print(f"random\t{kills}", flush=True)


def step_of(manifest):
    return json.loads(manifest.read_text())["step"] if manifest.exists() else -1


def is_done(process):
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


if __name__ == "__main__":
    pictures, folder, flags = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    train = ["train", pictures, *flags]
    # In this process, which has imported and prepared all that its forks need after that.
    cli.main([*train, "--out", str(folder / "unbroken")])
    at_named_moments(train, folder)
    at_random_moments(train, folder / "random", 12)
