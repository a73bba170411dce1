"""How training and detection scale over processes: one process of one thread against several.

    python benchmarks/scaling.py               # 1 against 2 processes: wants two free cores
    python benchmarks/scaling.py --arithmetic  # no measurement: operations and bytes of a step, from torch's counter

Each process has a core of its own where the system can pin it. With more processes the batch grows, as it does on more
GPUs: images a second over all processes are compared. The steps are those of the `fast` preset of MNIST-Hard on random
images; the time does not depend on what they show.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from tusk.allocator import keep_memory

keep_memory()

import torch  # noqa: E402 (after the allocator)
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from tusk.config import Config  # noqa: E402
from tusk.presets import load_config, merge  # noqa: E402
from tusk.training.distributed import Ranks, join_ranks, leave_ranks  # noqa: E402
from tusk.training.trainer import Trainer  # noqa: E402

TINY = {"data": {"size": 32}, "model": {"width": 8, "levels": 2, "window": 7}}
PROGRESS = 0.6  # types have started, so that every loss counts
WARM_UP = 2  # steps


def config_of(preset: str, batch: int | None, *, tiny: bool) -> Config:
    config = merge(load_config(preset).model_dump(), TINY if tiny else {})
    own = 8 if tiny else batch or config["training"]["batch"]
    return Config.model_validate(merge(config, {"training": {"batch": own}}))


def grown(config: Config, world: int) -> Config:
    """With so many times the batch."""
    return config.model_copy(
        update={"training": config.training.model_copy(update={"batch": config.training.batch * world})}
    )


def images_for(config: Config, ranks: Ranks) -> torch.Tensor:
    size, pairs = config.data.size, config.training.batch // 2
    return torch.randint(0, 256, (pairs, 3, size, size), dtype=torch.uint8)[ranks.part(pairs)]


def work(chosen: argparse.Namespace) -> None:
    """One of the processes: the first says what it measured."""
    ranks = join_ranks()
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[ranks.rank % len(cores)]})
    torch.set_num_threads(1)
    config = grown(config_of(chosen.preset, chosen.batch, tiny=chosen.tiny), ranks.world)
    trainer, images = Trainer(config, ranks), images_for(config, ranks)
    seconds = []
    for step in range(WARM_UP + chosen.steps):
        began = time.perf_counter()
        trainer.train_step(images, PROGRESS)
        if step >= WARM_UP:
            seconds.append(time.perf_counter() - began)
    if ranks.is_main:
        print(json.dumps({"images_per_second": config.training.batch / statistics.median(seconds)}), flush=True)
    leave_ranks(together=True)


def measure(processes: int, chosen: argparse.Namespace) -> float:
    """-> images a second."""
    own = [__file__, "--worker", "--preset", chosen.preset, "--steps", str(chosen.steps)]
    own += ["--batch", str(chosen.batch)] if chosen.batch else []
    own += ["--tiny"] if chosen.tiny else []
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--master-port", str(chosen.port)]
    command = [sys.executable, *(launch if processes > 1 else []), *own]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(done.stderr)
    return float(json.loads(lines[0])["images_per_second"])


def arithmetic(chosen: argparse.Namespace) -> None:
    """What a step computes and sends, counted on this machine."""
    config = config_of(chosen.preset, chosen.batch, tiny=chosen.tiny)
    trainer, images = Trainer(config), images_for(config, Ranks())
    trainer.train_step(images, PROGRESS)
    with FlopCounterMode(display=False) as counter:
        trainer.train_step(images, PROGRESS)
    batch, flops = config.training.batch, counter.get_total_flops()
    weights = sum(parameter.numel() for parameter in trainer.body)
    model, found = config.model, config.training.batch * config.model.keypoints
    print(f"{chosen.preset}: batch {batch}, {config.data.size} x {config.data.size} pixels")
    print(f"  operations: {flops / 1e9:.1f} GFLOP a step, {flops / batch / 1e9:.2f} GFLOP an image")
    print(f"  weights: {weights:,}: {4 * weights / 1e6:.1f} MB of gradients to add up in every step")
    print(
        f"  descriptors: {found} x {model.channels}: {4 * found * model.channels / 1e3:.1f} kB gathered in every step"
    )
    steps = config.training.prototype_steps
    every = f"prototypes: {steps} steps on all descriptors"
    flops = steps * 3 * 2 * 2 * 100 * found * model.channels  # two products on 100 directions, forwards and backwards
    print(f"  {every}, {flops / 1e6:.1f} MFLOP and {200 * found * steps:,} numbers sorted")


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--preset", default="mnist-hard/fast")
    flags.add_argument("--processes", type=int, default=2)
    flags.add_argument("--steps", type=int, default=20, help="measured steps; their median counts")
    flags.add_argument("--batch", type=int, help="images in a step of each process; default: the preset's")
    flags.add_argument("--rounds", type=int, default=2, help="both sides take turns; the best of each counts")
    flags.add_argument("--port", type=int, default=29671)
    flags.add_argument("--tiny", action="store_true", help="two steps of a tiny network: does it run?")
    flags.add_argument("--arithmetic", action="store_true", help="count a step instead of measuring it")
    flags.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = flags.parse_args()
    if chosen.tiny:
        chosen.steps, chosen.rounds = 2, 1
    if chosen.worker:
        work(chosen)
        return
    if chosen.arithmetic:
        arithmetic(chosen)
        return
    one, several = [], []
    for _ in range(chosen.rounds):
        one.append(measure(1, chosen))
        several.append(measure(chosen.processes, chosen))
    best, together = max(one), max(several)
    print(f"{chosen.preset}: 1 process {best:.1f} images/s, {chosen.processes} processes {together:.1f} images/s")
    print(f"ratio: {together / best:.2f}x, one thread each")


if __name__ == "__main__":
    main()
