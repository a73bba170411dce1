"""`tusk` with something wrong, run by tests: `python -m tests.system.scripted WHAT WORDS...`, also by torchrun.

stuck-step, stuck-detection: what never comes back to Python is under way, and a file `under-way` says so.
other-words: process 1 gets the words after `--` in place of those before.
dies N: process 1 is killed at step N of its first attempt; slow-seeds: it also looks later than the others.
"""

import os
import signal
import sys
import time
from pathlib import Path

from tests.processes import threads_named
from tests.stuck import stuck
from tusk.cli.main import main


def get_stuck(*_):
    Path("under-way").touch()
    stuck()


def run(what, words):
    rank = os.environ.get("RANK", "0")
    if what == "stuck-step":
        from tusk.training.trainer import Trainer

        Trainer.train_step = get_stuck
    elif what == "stuck-detection":
        from tusk.detection.predictor import Predictor

        Predictor.detect_fitted = get_stuck
    elif what == "other-words":
        middle = words.index("--")
        words = words[middle + 1 :] if rank == "1" else words[:middle]
    elif what == "dies":
        last, words = int(words[0]), words[1:]
        if rank == "1":
            _die_at(last)
    main(words)


def _die_at(last):
    from tusk.training import seeds, start
    from tusk.training.trainer import Trainer

    step, train_seeds = Trainer.train_step, seeds.train_seeds

    def deadly(self, *args):
        if self.step == last and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *args)

    def slowly(folder, chosen, train, **options):
        def late(seed, place):
            time.sleep(1)  # by now the first process has begun this seed
            return train(seed, place)

        return train_seeds(folder, chosen, late, **options)

    Trainer.train_step, start.train_seeds = deadly, slowly


if __name__ == "__main__":
    try:
        run(sys.argv[1], sys.argv[2:])
    finally:
        # One that outlives the process group may abort the process while Python shuts down.
        if left := threads_named("gloo"):
            print("Traceback: threads are left:", left, file=sys.stderr)
