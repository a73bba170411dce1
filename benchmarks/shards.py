"""How fast small pictures are packed into shards and read from them, on one core; killed halfway, and gone on with.

    python benchmarks/shards.py                    # 100,000 pictures of 32 x 32 pixels
    python benchmarks/shards.py --count 10000

It makes the pictures as PNG files in a temporary folder, packs them, and reads them in the order of a training:
shuffled within a window, decoded and framed. Packing and reading are each done twice: by one process, and by one that
is killed halfway (SIGKILL) and another that goes on. Both have to give the same: the shards to the byte, the order and
the pixels to the sample.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from tusk.data.loader import Loader
from tusk.data.registry import Request, open_dataset
from tusk.data.shards.writer import pack_pictures
from tusk.data.sources import find_files

SIDE, BATCH, SEED = 32, 64, 0
SHARDS = 8  # about


def make(folder: Path, count: int) -> int:
    """Pictures with a few coloured squares: as small as thumbnails are, and not all alike. -> their bytes."""
    rng = np.random.default_rng(0)
    written = 0
    for number in range(count):
        pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
        for x, y in rng.integers(0, SIDE - 6, (3, 2)):
            pixels[y : y + 6, x : x + 6] = rng.integers(60, 255, 3)
        part = folder / f"{number // 1000:03d}"
        part.mkdir(exist_ok=True)
        file = part / f"{number:06d}.png"
        Image.fromarray(pixels).save(file, compress_level=1)
        written += file.stat().st_size
    return written


def pack(photos: Path, out: Path, shard_bytes: int) -> dict[str, float]:
    source = find_files(photos)
    wall, spent = time.perf_counter(), time.process_time()
    pack_pictures(
        source, out, shard_bytes=shard_bytes, progress=lambda done, _: _say(done) if done % BATCH == 0 else None
    )
    return {"wall": time.perf_counter() - wall, "core": time.process_time() - spent}


def read(shards: Path, position: int, batches: int, log: Path) -> dict[str, float]:
    """Up to that many batches in all; each one's pictures and pixels go into a line of the log, which is flushed."""
    dataset = open_dataset("folder", Request(source=str(shards), size=SIDE))
    with Loader(dataset, batch=BATCH, seed=SEED, position=position) as loader, log.open("a") as lines:
        wall, spent = time.perf_counter(), time.process_time()
        while loader.position < batches:
            batch = next(loader)
            pixels = hashlib.sha256(batch.images.numpy().tobytes()).hexdigest()[:16]
            print(batch.position, pixels, *batch.indices.tolist(), file=lines, flush=True)
            _say(loader.position)
        return {"wall": time.perf_counter() - wall, "core": time.process_time() - spent}


def _say(done: int) -> None:
    """To whoever may kill this process."""
    print(done, flush=True)


class Run:
    """One of the two above, in a process of its own."""

    def __init__(self, *arguments: str | Path | int) -> None:
        command = [sys.executable, __file__, "--worker", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def finish(self) -> dict[str, float]:
        """-> its seconds, by the clock and of a core."""
        lines = self._lines(lambda _: False)
        if self.process.wait():
            raise SystemExit(f"a process ended with {self.process.returncode}; see above")
        return dict(json.loads(lines))

    def kill_at(self, count: int) -> None:
        self._lines(lambda line: line.isdecimal() and int(line) >= count)
        self.process.kill()
        self.process.wait()

    def _lines(self, enough: Callable[[str], bool]) -> str:
        assert self.process.stdout is not None
        line = ""
        for line in map(str.strip, self.process.stdout):
            if enough(line):
                break
        return line


def work(arguments: list[str]) -> None:
    torch.set_num_threads(1)
    verb, source, out = arguments[0], Path(arguments[1]), Path(arguments[2])
    first, second = map(int, arguments[3:])
    print(json.dumps(pack(source, out, first) if verb == "pack" else read(source, first, second, out)), flush=True)


def rate(count: int, seconds: dict[str, float]) -> str:
    return f"{count / seconds['wall']:,.0f} images/s, {count / seconds['core']:,.0f} for each second of a core's time"


def checksums(shards: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(shards.iterdir())}


def check(same: bool, what: str) -> None:
    print(f"{what}: {'yes' if same else 'NO'}")
    if not same:
        raise SystemExit(1)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--count", type=int, default=100_000, help="pictures")
    flags.add_argument("--tiny", action="store_true", help="500 pictures: does it run?")
    flags.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    chosen = flags.parse_args()
    if chosen.worker:
        work(chosen.worker)
        return
    count = 500 if chosen.tiny else chosen.count
    batches = count // BATCH
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        photos, shards, again = folder / "photos", folder / "shards", folder / "again"
        photos.mkdir()
        size = max(1, make(photos, count) // SHARDS)
        print(f"packed: {rate(count, Run('pack', photos, shards, size, 0).finish())}, {count:,} pictures")
        Run("pack", photos, again, size, 0).kill_at(count // 2)
        kept = len(list(again.glob("shard-*.bin")))
        Run("pack", photos, again, size, 0).finish()
        check(checksums(again) == checksums(shards), f"packing killed after {kept} shards, the same bytes")
        whole, log = folder / "whole.txt", folder / "log.txt"
        print(f"read:   {rate(batches * BATCH, Run('read', shards, whole, 0, batches).finish())}")
        Run("read", shards, log, 0, batches).kill_at(batches // 2)
        lines = log.read_text().splitlines(keepends=True)
        at = len([line for line in lines if line.endswith("\n")])  # whole lines: batches that were handed out
        log.write_text("".join(lines[:at]))
        Run("read", shards, log, at, batches).finish()
        check(log.read_text() == whole.read_text(), f"reading killed after batch {at} of {batches}, the same samples")
        seen = [int(word) for line in whole.read_text().splitlines() for word in line.split()[2:]]
        check(len(set(seen)) == batches * BATCH, "every picture once")


if __name__ == "__main__":
    main()
