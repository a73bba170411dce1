"""Pictures a second that detection takes on one core, and fast gains of plain decoders against the exact ones.

    python benchmarks/detection.py            # plain and sized networks, pictures of 640x480
    python benchmarks/detection.py --pictures 20

Plain: the shipped model mnist-hard, whose network is that of the preset folder/plain, on crowds of its digits, scaled
to frames of about 171x128, with 25 keypoints. Sized: the shipped model blood-cells, of the preset folder/fast, in
tiles, on drawn cells. Time is the processor's, for a machine that does other things as well.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image

from tusk.config import Config
from tusk.data.registry import Request, open_dataset
from tusk.detection.gain import exact_gains, gains
from tusk.detection.predictor import Predictor
from tusk.model.network import Network
from tusk.model.storage import StoredModel, load_model
from tusk.presets import merge
from tusk.weights import shipped_models

KEYPOINTS = 25
SIZE = 128  # shorter side of a frame


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--pictures", type=int, default=8)
    flags.add_argument("--tiny", action="store_true", help="one small picture: does it run?")
    chosen = flags.parse_args()
    torch.set_num_threads(1)
    size = (240, 180) if chosen.tiny else (640, 480)
    shown = pictures(1 if chosen.tiny else chosen.pictures, size)
    repeats = 1 if chosen.tiny else 3
    print(f"{len(shown)} pictures of {size[0]}x{size[1]}, best of {repeats}, processor time of one core\n")

    stored = load_model(shipped_models()["mnist-hard"])
    plain = with_data(stored.network, stored.config, {"size": SIZE, "fit": "centre-crop"})
    speed("plain (folder/plain)", Predictor(plain, keypoints=KEYPOINTS, min_gain=0.0), shown, repeats)
    compare(plain.network, frames(shown), repeats)

    cells = [drawn_cells(size, seed) for seed in range(len(shown))]
    speed("sized (folder/fast)", Predictor(load_model(shipped_models()["blood-cells"])), cells, repeats)


def pictures(count: int, size: tuple[int, int]) -> list[Image.Image]:
    """Crowds of digits, six canvases to each picture."""
    dataset = open_dataset("digits", Request(split="test", count=6 * count, size=80, fit="centre-crop"))
    canvases = np.stack([np.asarray(dataset.image(number)) for number in range(6 * count)])
    crowds = canvases.reshape(count, 2, 3, 80, 80, 3).transpose(0, 1, 3, 2, 4, 5).reshape(count, 160, 240, 3)
    return [Image.fromarray(crowd[16:144, 20:191]).resize(size, Image.Resampling.BICUBIC) for crowd in crowds]


def drawn_cells(size: tuple[int, int], seed: int) -> Image.Image:
    """Red discs, paler in their middle, as many and as large as in a smear of blood; some touch."""
    random = np.random.default_rng(seed)
    width, height = size
    y, x = np.mgrid[:height, :width].astype(np.float32)
    pixels = np.full((height, width, 3), (0.85, 0.83, 0.8), np.float32)
    for _ in range(width * height // 20_000):
        middle, radius = random.uniform((0, 0), size), random.uniform(38, 50)
        from_middle = np.hypot(x - middle[0], y - middle[1]) / radius
        cover = np.clip((1 - from_middle) * radius / 2, 0, 1) * (0.55 + 0.45 * np.clip(from_middle, 0.3, 1))
        pixels += cover[..., None] * (np.array((0.72, 0.5, 0.52), np.float32) - pixels)
    pixels += random.normal(0, 0.01, pixels.shape)
    return Image.fromarray((255 * pixels.clip(0, 1)).astype(np.uint8))


def frames(shown: list[Image.Image]) -> torch.Tensor:
    """As the network gets them, (B, 3, H, W)."""
    small = [np.array(picture.resize((171, SIZE), Image.Resampling.BICUBIC)) for picture in shown]
    return torch.from_numpy(np.stack(small)).permute(0, 3, 1, 2).float() / 255


def with_data(network: Network, config: Config, data: dict[str, object]) -> StoredModel:
    return StoredModel(network.eval(), Config.model_validate(merge(config.model_dump(), {"data": data})))


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The processor's, once warm."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def speed(name: str, predictor: Predictor, shown: list[Image.Image], repeats: int) -> None:
    each = seconds(lambda: predictor.detect(shown), repeats) / len(shown)
    found = sum(len(detections) for detections in predictor.detect(shown)) / len(shown)
    print(f"{name:<22}{1 / each:>6.1f} pictures/s {1000 * each:>8.0f} ms each, {found:.1f} detections each", flush=True)


@torch.no_grad()
def compare(network: Network, images: torch.Tensor, repeats: int) -> None:
    """Print how long both ways take, and how far apart they are."""
    output = network(images, KEYPOINTS, missing="empty")
    for name, way in (
        ("exact gains", lambda: exact_gains(network, images, output, output.found)),
        ("fast gains", lambda: gains(network, images, output)),
    ):
        print(f"  {name:<20}{1000 * seconds(way, repeats) / len(images):>8.0f} ms each", flush=True)
    exact = exact_gains(network, images, output, output.found)[output.found]
    apart = ((gains(network, images, output)[output.found] - exact) / exact).abs()
    share = f"largest {100 * float(apart.max()):.2f} %, median {100 * float(apart.median()):.2f} %"
    print(f"  fast against exact, of {len(apart)} gains: {share} apart\n", flush=True)


if __name__ == "__main__":
    main()
