"""Run by `test_detect.py`: detects in child processes that are killed, at random and at named moments, and run again.

Everything is imported once, here; the children are forks. Usage: detect_kills.py MODEL PICTURES FOLDER KILLS
"""

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path
from unittest import mock

from tests import forks
from tests.forks import end
from tusk.cli import main as cli
from tusk.detection import ledger
from tusk.export import files, results


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dying(owner, name, *, at, first):
    """Die before (or, with `first`, right after) the `at`-th call of owner.name."""
    original, calls = getattr(owner, name), 0

    def killing(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == at and not first:
            die()
        result = original(*args, **kwargs)
        if calls == at:
            die()
        return result

    return mock.patch.object(owner, name, killing)


def half_written(ending):
    """Die when half of the file lies under its temporary name."""
    original = Path.replace

    def killing(path, target):
        if path.name.endswith(ending):
            os.truncate(path, path.stat().st_size // 2)
            die()
        return original(path, target)

    return mock.patch.object(Path, "replace", killing)


MOMENTS = {
    "before the list of files": lambda: dying(ledger, "atomic_file", at=1, first=False),
    "half of the list written": lambda: half_written(".files.jsonl.part"),
    "before the first manifest": lambda: dying(ledger.Manifest, "write", at=1, first=False),
    "half of the manifest written": lambda: half_written(".manifest.json.part"),
    "before the first part": lambda: dying(ledger.Ledger, "store", at=1, first=False),
    "half of a part written": lambda: half_written(".000001.jsonl.part"),
    "after a part": lambda: dying(ledger.Ledger, "store", at=2, first=True),
    "half of a mask written": lambda: half_written("20.png.png.part"),
    "before the results": lambda: dying(files, "write_results", at=1, first=False),
    "half of the table written": lambda: half_written(".detections.csv.part"),
    "half of the counts written": lambda: half_written(".counts.csv.part"),
    "half of coco.json written": lambda: half_written(".coco.json.part"),
    "before coco.json": lambda: dying(results, "write_coco", at=1, first=False),
    "after the results": lambda: dying(files, "write_results", at=1, first=True),
    "complete, parts still there": lambda: dying(ledger.Ledger, "_clear", at=1, first=False),
}


def start(args, moment=None):
    return forks.start(args, MOMENTS.get(moment, contextlib.nullcontext))


if __name__ == "__main__":
    model, pictures, folder, kills = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    command = ["detect", model, pictures, *sys.argv[5:], "--out"]
    # In this process, which has imported and prepared all that its forks need after that.
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        cli.main([*command, str(folder / "unbroken")])
    began = time.monotonic()
    assert end(start([*command, str(folder / "again")])) == 0
    whole = time.monotonic() - began
    rng = random.Random(0)
    done = 0
    while done < kills:
        out = folder / f"random-{done}"
        while True:
            process = start([*command, str(out)])
            time.sleep(rng.uniform(0.02, whole / 3))
            os.kill(process, signal.SIGKILL)
            if end(process) == 0:
                break  # it had ended before
            done += 1
            if done >= kills:
                assert end(start([*command, str(out)])) == 0
                break
    for number, moment in enumerate(MOMENTS if "--masks" in command else ()):
        out = str(folder / f"named-{number}")
        ended = end(start([*command, out], moment))
        assert ended == -signal.SIGKILL, (moment, ended)
        ended = end(start([*command, out]))
        assert ended == 0, (moment, ended)
    print(f"{done} random kills, {whole:.1f} s unbroken")
