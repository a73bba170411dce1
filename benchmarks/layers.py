"""Time and peak memory of a training step with layers, against K, for whole-image and windowed decoding.

    python benchmarks/layers.py                  # K = 3, 6, 12, 24 at 112 pixels
    python benchmarks/layers.py --window 32 --size 128

The network is that of the `clevr6` preset. Each case runs in a process of its own, so that its peak memory is its own;
the two ways take turns for every K, so that whatever else the machine does falls on both alike. `decode` is the
decoder's forward and backward alone, `step` is all of a training step: warps, encoder, decoder, losses, optimiser.

Whole-image decoding is ours, too: it leaves out what is constant (see `model/compressed.py`). `dense` is the plain way,
K whole images through the U-Net, as the authors decode.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

COUNTS = (3, 6, 12, 24)
WAYS = ("windowed", "whole", "dense")
PAIRS = 4


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--size", type=int, default=112, help="side of the images in pixels")
    flags.add_argument("--window", type=int, default=48, help="side of a layer's window in pixels")
    flags.add_argument("--repeats", type=int, default=3)
    flags.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    flags.add_argument("--keypoints", type=int, help=argparse.SUPPRESS)
    flags.add_argument("--tiny", action="store_true", help="K = 2 on small images, timed once: does it run?")
    chosen = flags.parse_args()
    if chosen.tiny:
        chosen.size, chosen.window, chosen.repeats = 32, 16, 1
    counts = (2,) if chosen.tiny else COUNTS
    if chosen.way:
        print(json.dumps(measure(chosen.way, chosen.keypoints, chosen.size, chosen.window, chosen.repeats)))
        return
    measured: dict[tuple[str, int], dict[str, float]] = {}
    print(f"{2 * PAIRS} images of {chosen.size} pixels a step, windows of {chosen.window}; seconds, MB at most")
    for count in counts:
        for way in WAYS:
            command = [sys.executable, __file__, "--way", way, "--keypoints", str(count), "--size", str(chosen.size)]
            command += ["--window", str(chosen.window), "--repeats", str(chosen.repeats)]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            one = measured[way, count] = json.loads(printed)
            print(f"K = {count:2}  {way:9} step {one['step']:.3f}  decode {one['decode']:.3f}  {one['memory']:.0f} MB")
    few, many = (6, 24) if 24 in counts else (counts[0], counts[-1])
    for part in ("decode", "step"):
        growth = measured["windowed", many][part] / measured["windowed", few][part]
        print(f"windowed, K {few} -> {many}: {part} takes {growth:.2f}x, for {many / few:.0f}x the area of layers")
        for way in ("whole", "dense"):
            ratio = measured[way, few][part] / measured["windowed", few][part]
            print(f"{way} / windowed at K = {few}: {part} {ratio:.2f}x")


def measure(way: str, keypoints: int, size: int, window: int, repeats: int) -> dict[str, float]:
    """One case, in this process."""
    from tusk.allocator import keep_memory

    keep_memory()
    import torch

    from tusk.config import Config
    from tusk.model import decoder
    from tusk.model.splat import splat_each
    from tusk.presets import load_config, merge
    from tusk.training.trainer import Trainer

    if way == "dense":
        decoder.decode_layers = lambda unet, xy, score, descriptors, shape, variance: unet(  # type: ignore[assignment]
            splat_each(xy, score, descriptors, *shape, variance)
        )
    model = {"keypoints": keypoints, "layer_window": window if way == "windowed" else None, "window": 7}
    settings = {"data": {"size": size}, "model": model, "training": {"batch": 2 * PAIRS, "window": None}}
    trainer = Trainer(Config.model_validate(merge(load_config("clevr6").model_dump(), settings)))
    network = trainer.network
    images = torch.randint(0, 256, (PAIRS, 3, size, size), dtype=torch.uint8)

    def step() -> None:
        trainer.train_step(images, 0.1)

    with torch.no_grad():
        encoded = network.encode(images.float() / 255)
    descriptors = encoded.descriptors.requires_grad_()

    def decode() -> None:
        reconstructed = network.decode(
            encoded.keypoints, descriptors, (size, size), thumbnail=encoded.thumbnail, layers=False
        )
        reconstructed.reconstruction.square().mean().backward()

    def timed(work: Callable[[], None]) -> float:
        work()
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)

    result = {"step": timed(step), "decode": timed(decode)}
    return result | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    main()
