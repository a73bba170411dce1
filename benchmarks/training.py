"""How fast the `fast` preset of MNIST-Hard trains, what part of that is convolution, and how it compares to `paper`.

    python benchmarks/training.py
    python benchmarks/training.py --against OLDER/src     # this code against another tree of it
    python benchmarks/training.py --profile folder/fast   # what a step's time goes to

Steps of both sides take turns, so that whatever else the machine does falls on both alike. A step counts whole:
warping, both networks, prototypes. Images are discs on noise: as many things as there are in use.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tusk.allocator import keep_memory

keep_memory()

import torch  # noqa: E402 (after the allocator)
from torch import Tensor  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

import tusk  # noqa: E402
from tusk.config import Config  # noqa: E402
from tusk.presets import load_config, merge  # noqa: E402
from tusk.training.trainer import Trainer  # noqa: E402

TINY = {"data": {"size": 32}, "model": {"width": 8, "levels": 2}, "training": {"batch": 8}}
SIZED = {"model": {"sizes": [4.8, 16.0]}}
PROGRESS = 0.6  # types have started, so that every loss counts
WARM_UP = 3  # steps: until the memory that they take is there
LISTED = 16  # operations of a profile


def disc_images(count: int, size: int, discs: int = 6) -> Tensor:
    """uint8 (count, 3, size, size): dark discs, whose radius is a twelfth of the side, on weak noise."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(110, 146, (count, 3, size, size), generator=generator, dtype=torch.uint8)
    place = torch.arange(size)
    for image in images:
        for x, y in torch.randint(0, size, (discs, 2), generator=generator).tolist():
            image[:, (place[:, None] - y) ** 2 + (place - x) ** 2 < (size / 12) ** 2] = 40
    return images


class Side:
    """One preset, ready to step."""

    def __init__(self, preset: str, *, tiny: bool) -> None:
        self.preset = preset
        plain = load_config(preset).model_dump()
        if tiny:
            plain = merge(plain, TINY)
            plain = merge(plain, SIZED if plain["model"].get("sizes") else {"model": {"window": 7}})
        config = Config.model_validate(plain)
        self.batch = config.training.batch
        self.trainer = Trainer(config)
        self.images = disc_images(self.batch // 2, config.data.size)
        self.seconds: list[float] = []

    def step(self) -> float:
        """-> the seconds it took."""
        began = time.perf_counter()
        self.trainer.train_step(self.images, PROGRESS)
        self.seconds.append(time.perf_counter() - began)
        return self.seconds[-1]

    def warm_up(self) -> None:
        for _ in range(WARM_UP):
            self.step()
        self.seconds.clear()

    def images_per_second(self) -> float:
        return self.batch / statistics.median(self.seconds)

    def shares(self, steps: int = 3) -> dict[str, float]:
        """Of each operation in a step's time, the largest first."""
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            for _ in range(steps):
                self.trainer.train_step(self.images, PROGRESS)
        times = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
        total = sum(times.values())
        return dict(sorted(((name, spent / total) for name, spent in times.items()), key=lambda one: -one[1]))


class Tree:
    """A source tree of tusk in a process of its own, which makes a step when it is told to."""

    def __init__(self, source: Path, preset: str, *, tiny: bool) -> None:
        command = [sys.executable, __file__, "--worker", "--preset", preset, *(["--tiny"] if tiny else [])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds: list[float] = []
        used = Path(self.answer()).resolve()
        if source.resolve() not in used.parents:
            self.close()
            raise SystemExit(f"{source}: there is no tusk in it; give the folder that has tusk/")
        self.answer()  # it is warm

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the other process ended with {self.process.wait()}; see above")
        return line.strip()

    def step(self) -> None:
        assert self.process.stdin is not None
        print("step", file=self.process.stdin, flush=True)
        self.seconds.append(float(self.answer()))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def work(preset: str, *, tiny: bool) -> None:
    """The process of a `Tree`."""
    print(tusk.__file__, flush=True)
    side = Side(preset, tiny=tiny)
    side.warm_up()
    print("warm", flush=True)
    for _ in sys.stdin:
        print(side.step(), flush=True)


def compare_trees(other: Path, preset: str, steps: int, *, tiny: bool) -> None:
    """Both in a process of their own, of which one waits while the other works."""
    there, here = (Tree(source, preset, tiny=tiny) for source in (other, Path(tusk.__file__).parents[1]))
    try:
        for _ in range(steps):
            here.step()
            there.step()
    finally:
        here.close()
        there.close()
    ours, theirs = statistics.median(here.seconds), statistics.median(there.seconds)
    spread = statistics.quantiles([old / new for new, old in zip(here.seconds, there.seconds, strict=True)], n=4)
    print(
        f"{preset}: {theirs:.3f} s a step in {other}, {ours:.3f} s here; ratio {theirs / ours:.2f}x"
        f" (half of the {steps} turns between {spread[0]:.2f} and {spread[2]:.2f})"
    )


def compare_presets(rounds: int, *, tiny: bool) -> None:
    fast, paper = Side("mnist-hard/fast", tiny=tiny), Side("mnist-hard/paper", tiny=tiny)
    fast.warm_up()
    paper.warm_up()
    for _ in range(rounds):
        for _ in range(5):
            fast.step()
        paper.step()
    for side in (fast, paper):
        share = sum(share for name, share in side.shares().items() if "conv" in name)
        print(f"{side.preset}: {side.images_per_second():.1f} images/s, batch {side.batch}, {share:.0%} convolution")
    print(
        f"fast / paper: {fast.images_per_second() / paper.images_per_second():.1f}x ({torch.get_num_threads()} threads)"
    )


def show_profile(preset: str, steps: int, *, tiny: bool) -> None:
    side = Side(preset, tiny=tiny)
    side.warm_up()
    shares = side.shares(steps)
    convolution = sum(share for name, share in shares.items() if "conv" in name)
    print(f"{preset}: {convolution:.1%} convolution; without all else at most {1 / convolution:.2f}x as fast")
    for name, share in list(shares.items())[:LISTED]:
        print(f"  {share:6.1%}  {name}")


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--rounds", type=int, default=4, help="each round: five fast steps and one of the paper's")
    flags.add_argument("--against", type=Path, metavar="SRC", help="another tree's folder src")
    flags.add_argument("--profile", metavar="PRESET", help="the largest parts of a step of this preset")
    flags.add_argument("--preset", default="mnist-hard/fast", help="for --against")
    flags.add_argument("--steps", type=int, default=20, help="steps of each side with --against, or of a profile")
    flags.add_argument("--tiny", action="store_true", help="one round of a tiny network: does it run?")
    flags.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = flags.parse_args()
    tiny, steps = chosen.tiny, 2 if chosen.tiny else chosen.steps
    if chosen.worker:
        work(chosen.preset, tiny=tiny)
    elif chosen.against:
        compare_trees(chosen.against, chosen.preset, steps, tiny=tiny)
    elif chosen.profile:
        show_profile(chosen.profile, steps, tiny=tiny)
    else:
        compare_presets(1 if tiny else chosen.rounds, tiny=tiny)


if __name__ == "__main__":
    main()
