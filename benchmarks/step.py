"""One training step of the paper's presets against the same step written the way the authors write it.

    python benchmarks/step.py                 # both cases, prints both ratios
    python benchmarks/step.py --case mnist-hard --repeats 3

The reference makes the dense tensors (a map for every keypoint and channel, a k x k kernel over every pixel for the
soft-argmax) and encodes all images again, with gradients that nobody uses, at each prototype step. Ours never makes
those tensors, works through the batch in parts, and encodes once. Both start from the same weights, see the same
images and draw the same random numbers; the benchmark stops if their losses or new weights differ.

Each side runs in a process of its own, so that its peak memory is its own. The reference is timed twice: with the C
library's memory settings as they come (as the authors run it) and with ours, so that what those settings bring and
what the algorithm brings can be told apart.
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
SIDES = ("reference", "reference, our allocator", "ours")


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--case", choices=CASES, help="only this one")
    flags.add_argument("--repeats", type=int, default=2, help="steps timed after one to warm up")
    flags.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    chosen = flags.parse_args()
    if chosen.side:
        print(json.dumps(measure(chosen.case, chosen.side, chosen.repeats)))
        return
    for case in [chosen.case] if chosen.case else CASES:
        results = {side: in_own_process(case, side, chosen.repeats) for side in SIDES}
        report(case, results)


def report(case: str, results: dict[str, dict[str, Any]]) -> None:
    """Print the table, after a check that the sides computed the same."""
    ours = results["ours"]
    for side, result in results.items():
        worst = max(abs(a - b) / (abs(b) + 1e-3) for a, b in zip(result["check"], ours["check"], strict=True))
        if worst > 2e-2:
            sys.exit(f"{case}: '{side}' and 'ours' do not compute the same ({result['check']} against {ours['check']})")
    print(f"\n{case}, batch {CASES[case]}: one step (network + 8 prototype steps)")
    print(f"{'':<28}{'seconds':>9}{'peak MB':>9}{'time ratio':>12}{'memory ratio':>14}")
    for side, result in results.items():
        slower, larger = result["seconds"] / ours["seconds"], result["peak_mb"] / ours["peak_mb"]
        print(f"{side:<28}{result['seconds']:>9.2f}{result['peak_mb']:>9.0f}{slower:>11.1f}x{larger:>13.1f}x")
    print(f"losses {', '.join(f'{value:.5f}' for value in ours['check'][:5])}: equal on all sides", flush=True)


def in_own_process(case: str, side: str, repeats: int) -> dict[str, Any]:
    environment = {**os.environ, "TUSK_ALLOCATOR": "off" if side == "reference" else "on"}
    command = [sys.executable, __file__, "--case", case, "--side", side, "--repeats", str(repeats)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(case: str, side: str, repeats: int) -> dict[str, Any]:
    from tusk.allocator import keep_memory

    keep_memory()
    import torch

    from tusk.presets import load_config
    from tusk.training.trainer import Trainer

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    preset = load_config(f"{case}/paper")
    # For the comparison both read descriptors bilinearly, leave the border out and mask the equivariance alike.
    training = preset.training.model_copy(update={"batch": CASES[case], "clip": 1e6})
    config = preset.model_copy(update={"training": training})
    torch.manual_seed(0)
    images = torch.randint(0, 256, (CASES[case] // 2, 3, config.data.size, config.data.size), dtype=torch.uint8)
    images = torch.nn.functional.avg_pool2d(images.float(), 9, 1, 4).to(torch.uint8)  # something with structure

    trainer = Trainer(config)
    if side != "ours":
        from reference_step import reference_step

        def step() -> list[float]:
            return reference_step(trainer, images)
    else:

        def step() -> list[float]:
            return list(trainer.train_step(images, 0.5).losses.values())

    check = step()
    check.append(float(trainer.network.encoder.unet.last.weight.abs().sum()))
    check.append(float(trainer.network.prototypes.unit().detach().abs().sum()))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": min(times), "peak_mb": peak, "check": check}


if __name__ == "__main__":
    main()
