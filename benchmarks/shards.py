"""How fast small pictures are packed into shards and read from them, on one core.

    python benchmarks/shards.py

It makes 100,000 pictures of 32 x 32 pixels as PNG files in a temporary folder, packs them, and reads them in the order
of a training: shuffled within a window, decoded and framed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from tusk.data.loader import Loader
from tusk.data.registry import Request, open_dataset
from tusk.data.shards.writer import pack_pictures
from tusk.data.sources import find_files

SIDE, BATCH = 32, 64


def make(folder: Path, count: int) -> None:
    """Pictures with a few coloured squares: as small as thumbnails are, and not all alike."""
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
        for x, y in rng.integers(0, SIDE - 6, (3, 2)):
            pixels[y : y + 6, x : x + 6] = rng.integers(60, 255, 3)
        part = folder / f"{number // 1000:03d}"
        part.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(part / f"{number:06d}.png", compress_level=1)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--count", type=int, default=100_000, help="pictures")
    flags.add_argument("--tiny", action="store_true", help="500 pictures: does it run?")
    chosen = flags.parse_args()
    count = 500 if chosen.tiny else chosen.count
    with tempfile.TemporaryDirectory() as temporary:
        photos, shards = Path(temporary, "photos"), Path(temporary, "shards")
        photos.mkdir()
        make(photos, count)
        began = time.perf_counter()
        packed = pack_pictures(find_files(photos), shards, shard_bytes=4_000_000)
        seconds = time.perf_counter() - began
        print(f"packed: {count:,} pictures in {len(packed.manifest.shards)} shards, {count / seconds:,.0f} images/s")
        dataset = open_dataset("folder", Request(source=str(shards), size=SIDE))
        with Loader(dataset, batch=BATCH, seed=0) as loader:
            next(loader)
            wall, spent = time.perf_counter(), time.process_time()
            for _ in range(count // BATCH):
                next(loader)
            wall, spent = time.perf_counter() - wall, time.process_time() - spent
        read = count // BATCH * BATCH
        print(f"read:   {read / wall:,.0f} images/s, {read / spent:,.0f} images for each second of one core's time")


if __name__ == "__main__":
    main()
