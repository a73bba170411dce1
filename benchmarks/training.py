"""How fast the `fast` preset of MNIST-Hard trains, what part of that is convolution, and how it compares to `paper`.

    python benchmarks/training.py

Steps of both presets take turns in one process, so that whatever else the machine does falls on both alike. Images
are random: the time does not depend on what they show. A step counts whole: warping, both networks, prototypes.
"""

from __future__ import annotations

import argparse
import statistics
import time

from tusk.allocator import keep_memory

keep_memory()

import torch  # noqa: E402 (after the allocator)
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from tusk.config import Config  # noqa: E402
from tusk.presets import load_config, merge  # noqa: E402
from tusk.training.trainer import Trainer  # noqa: E402

TINY = {"data": {"size": 32}, "model": {"width": 8, "levels": 2, "window": 7}, "training": {"batch": 8}}
PROGRESS = 0.6  # types have started, so that every loss counts


class Side:
    """One preset, ready to step."""

    def __init__(self, preset: str, changes: dict[str, dict[str, int]]) -> None:
        self.preset = preset
        config = Config.model_validate(merge(load_config(preset).model_dump(), changes))
        self.batch = config.training.batch
        self.trainer = Trainer(config)
        size = config.data.size
        self.images = torch.randint(0, 256, (self.batch // 2, 3, size, size), dtype=torch.uint8)
        self.seconds: list[float] = []

    def step(self) -> None:
        started = time.perf_counter()
        self.trainer.train_step(self.images, PROGRESS)
        self.seconds.append(time.perf_counter() - started)

    def images_per_second(self) -> float:
        return self.batch / statistics.median(self.seconds)

    def convolution_share(self) -> float:
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            for _ in range(3):
                self.trainer.train_step(self.images, PROGRESS)
        events = profiled.key_averages()
        total = sum(event.self_cpu_time_total for event in events)
        return sum(event.self_cpu_time_total for event in events if "conv" in event.key) / total


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--rounds", type=int, default=4, help="each round: five fast steps and one of the paper's")
    flags.add_argument("--tiny", action="store_true", help="one round of a tiny network: does it run?")
    chosen = flags.parse_args()
    changes, rounds = (TINY, 1) if chosen.tiny else ({}, chosen.rounds)
    fast, paper = Side("mnist-hard", changes), Side("mnist-hard/paper", changes)
    for side in (fast, paper):
        side.step()
        side.seconds.clear()
    for _ in range(rounds):
        for _ in range(5):
            fast.step()
        paper.step()
    for side in (fast, paper):
        share = side.convolution_share()
        print(f"{side.preset}: {side.images_per_second():.1f} images/s, batch {side.batch}, {share:.0%} convolution")
    print(
        f"fast / paper: {fast.images_per_second() / paper.images_per_second():.1f}x ({torch.get_num_threads()} threads)"
    )


if __name__ == "__main__":
    main()
