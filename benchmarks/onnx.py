"""Images a second of a model's ONNX graph under onnxruntime, against the network itself in torch, on one core.

    python benchmarks/onnx.py                              # mnist-hard, batches of 1 and 8
    python benchmarks/onnx.py --model runs/mine --size 128

Both find the same points, types and descriptors in the same images, without gains (which need the decoder); they take
turns, and the best of several rounds counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
# Run by its path, a script finds its own folder first, and in it this very file for the package `onnx`.
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--model", default="mnist-hard")
    flags.add_argument("--size", type=int, help="side of the images in pixels; default: as in training")
    flags.add_argument("--rounds", type=int, default=7)
    flags.add_argument("--images", type=int, default=64, help="in a round")
    flags.add_argument("--tiny", action="store_true", help="a few small images once: does it run?")
    chosen = flags.parse_args()
    if chosen.tiny:
        chosen.size, chosen.rounds, chosen.images = 48, 1, 8

    import torch

    from tusk.api.model import load
    from tusk.detection.onnx_model import OnnxModel
    from tusk.detection.settings import settings_of
    from tusk.export.onnx.model import write_onnx
    from tusk.weights import model_path

    torch.set_num_threads(1)
    model = load(chosen.model)
    network, settings = model.network.eval(), settings_of(model._stored)
    size = chosen.size or model.config.data.size
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write_onnx(model._stored, path)
        graph = OnnxModel(path, threads=1)
    print(f"{model_path(chosen.model).stem}: images of {size} x {size} pixels on one core; images a second")
    images = torch.rand(chosen.images, 3, size, size, generator=torch.Generator().manual_seed(0))
    images = torch.nn.functional.avg_pool2d(images, 7, 1, 3)  # something with structure
    for batch in (1, 8):
        parts = images.split(batch)

        def in_torch(parts: tuple[torch.Tensor, ...] = parts) -> None:
            with torch.no_grad():
                for part in parts:
                    network.prototypes(network.encode(part, settings.keypoints, settings.window).descriptors).max(-1)

        def in_onnx(parts: tuple[torch.Tensor, ...] = parts) -> None:
            for part in parts:
                graph.run(part.numpy())

        best = best_of({"torch": in_torch, "onnx": in_onnx}, chosen.rounds)
        rate = {way: chosen.images / seconds for way, seconds in best.items()}
        ratio = rate["onnx"] / rate["torch"]
        print(
            f"batch {batch}: torch {rate['torch']:.1f}, onnx {rate['onnx']:.1f}: onnx / torch {ratio:.2f}x", flush=True
        )


def best_of(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Seconds of the fastest round of each; one before that does not count."""
    best = dict.fromkeys(ways, float("inf"))
    for number in range(rounds + 1):
        for way, run in ways.items():
            start = time.perf_counter()
            run()
            if number:
                best[way] = min(best[way], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
