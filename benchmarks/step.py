"""One training step of the paper's presets against the same step written the way the authors write it.

    python benchmarks/step.py                 # both cases, prints both ratios
    python benchmarks/step.py --case mnist-hard --repeats 3

The reference makes the dense tensors (a map for every keypoint and channel, a k x k kernel over every pixel for the
soft-argmax) and encodes all images again, with gradients that nobody uses, at each prototype step. Ours never makes
those tensors, works through the batch in parts, and encodes once. Both start from the same weights, see the same
images and draw the same random numbers; the benchmark stops if their losses or new weights differ.

Every measurement is a fresh process, so that its peak memory is its own. Both ways are measured under both settings of
the C library's memory: as it comes (how the authors run it) and kept (`tusk.allocator`). Ratios are between ways under
the same setting, so that what the settings bring and what the algorithm brings are told apart.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

CASES = {"mnist-hard": 40, "clevr6": 8}  # preset -> images in a batch, both views counted
WAYS = ("reference", "ours")
ALLOCATORS = {"as it comes": "off", "kept": "on"}  # -> TUSK_ALLOCATOR
TINY = {
    "data": {"size": 32},
    "model": {"width": 8, "channels": 8, "keypoints": 3, "levels": 2, "window": 7},
    "training": {"batch": 4, "micro_batch": None},
}


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--case", choices=CASES, help="only this one")
    flags.add_argument("--repeats", type=int, default=2, help="steps timed after one to warm up")
    flags.add_argument("--tiny", action="store_true", help="a tiny network, one step and one allocator: does it run?")
    flags.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    chosen = flags.parse_args()
    repeats = 1 if chosen.tiny else chosen.repeats
    if chosen.way:
        print(json.dumps(measure(chosen.case, chosen.way, repeats, tiny=chosen.tiny)))
        return
    for case in [chosen.case] if chosen.case else CASES:
        print(f"\n{case}: one step (network + prototype steps)")
        print(f"{'memory':<14}{'':<12}{'seconds':>9}{'peak MB':>9}{'time ratio':>12}{'memory ratio':>14}")
        for allocator in ["kept"] if chosen.tiny else ALLOCATORS:
            report(case, allocator, {way: fresh(case, way, allocator, repeats, tiny=chosen.tiny) for way in WAYS})


def report(case: str, allocator: str, results: dict[str, dict[str, Any]]) -> None:
    """Print two rows, after a check that both ways computed the same."""
    reference, ours = (results[way]["check"] for way in WAYS)
    # The reference has the paper's terms only: all others must be 0 in ours.
    for name in ours.keys() | reference.keys():
        mine, theirs = ours.get(name, 0.0), reference.get(name, 0.0)
        if abs(mine - theirs) > 2e-2 * (abs(mine) + 1e-3):
            sys.exit(f"{case}: the two do not compute the same '{name}' ({theirs} and {mine})")
    for way, result in results.items():
        slower, larger = (result[key] / results["ours"][key] for key in ("seconds", "peak_mb"))
        row = f"{result['seconds']:>9.2f}{result['peak_mb']:>9.0f}{slower:>11.1f}x{larger:>13.1f}x"
        print(f"{allocator:<14}{way:<12}{row}", flush=True)
    print(f"equal: {', '.join(f'{name} {value:.5f}' for name, value in reference.items())}", flush=True)


def fresh(case: str, way: str, allocator: str, repeats: int, *, tiny: bool) -> dict[str, Any]:
    """`measure` in a process of its own."""
    environment = {**os.environ, "TUSK_ALLOCATOR": ALLOCATORS[allocator]}
    command = [sys.executable, __file__, "--case", case, "--way", way, "--repeats", str(repeats)]
    done = subprocess.run(command + ["--tiny"] * tiny, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(case: str, way: str, repeats: int, *, tiny: bool) -> dict[str, Any]:
    from tusk.allocator import keep_memory

    keep_memory()
    import torch

    from tusk.config import Config
    from tusk.presets import load_config, merge
    from tusk.training.trainer import Trainer

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    # For the comparison both read descriptors bilinearly, leave the border out and mask the equivariance alike.
    values = merge(load_config(f"{case}/paper").model_dump(), {"training": {"batch": CASES[case], "clip": 1e6}})
    config = Config.model_validate(merge(values, TINY) if tiny else values)
    torch.manual_seed(0)
    shape = (config.training.batch // 2, 3, config.data.size, config.data.size)
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    images = torch.nn.functional.avg_pool2d(images.float(), 9, 1, 4).to(torch.uint8)  # something with structure

    trainer = Trainer(config)
    if way == "reference":
        from reference_step import reference_step

        def step() -> dict[str, float]:
            return reference_step(trainer, images)
    else:

        def step() -> dict[str, float]:
            return dict(trainer.train_step(images, 0.5).losses)

    check = step()
    check["encoder weights"] = float(trainer.network.encoder.unet.last.weight.detach().abs().sum())
    check["prototype weights"] = float(trainer.network.prototypes.unit().detach().abs().sum())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": min(times), "peak_mb": peak, "check": check}


if __name__ == "__main__":
    main()
