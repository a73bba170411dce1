"""A folder of pictures as a dataset: square images of one size, decoded once into a cache."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import numpy as np

from tusk.data.cache import Entry, PixelCache, Row, Stamp, default_cache_dir
from tusk.data.dataset import Truth, UInt8Array
from tusk.data.images import read_picture
from tusk.data.placement import Fit, Placement, place, render
from tusk.data.sources import Skipped, find_files
from tusk.errors import DataError, UsageError, nearest

Progress = Callable[[int, int], None]  # images done, images in all

_CACHE_VERSION = 1  # raise it when the same file and options would give other bytes
_DECODING_THREADS = min(4, os.cpu_count() or 1)  # each may hold a picture of images.MAX_PIXELS


class FolderDataset:
    """Pictures from a folder, a file, a pattern or a list (see `find_files`), as (size, size, 3) images.

    Every picture is decoded once, fitted to the square (see `place`) and kept in a cache on disk, whence `image` reads.
    The files themselves are never changed. What cannot be read is left out and listed in `skipped_csv`; if that is more
    than half of the files, the source is not what it was taken for, and a DataError says so.

    With fit "random-crop" each picture has one crop, drawn from the seed and the file's name within the source. It is
    the same in every epoch, so that `image(i)` depends on `i` alone and `placement(i)` can tell where it came from;
    another seed gives other crops. Variation from epoch to epoch is left to the warps of training.

    With `grey` the three channels are equal, and the cache holds one of them.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        size: int,
        fit: Fit = "centre-crop",
        grey: bool = False,
        cache_dir: Path | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        if fit not in get_args(Fit):
            raise UsageError(f"fit '{fit}'", "is not known", nearest(fit, get_args(Fit)))
        if size < 1:
            raise UsageError(f"size {size}", "is not a number of pixels", "give at least 1")
        self.size, self.fit, self.grey, self.seed = size, fit, grey, seed
        self._source = find_files(source)
        if not self._source.files and not self._source.unreadable:
            raise DataError(str(source), "there are no pictures in it", "check the path, or name another folder")

        # The seed matters to random crops alone; all other fits share one cache.
        options = [_CACHE_VERSION, str(self._source.origin), size, fit, grey, seed if fit == "random-crop" else None]
        key = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:16]
        folder = Path(cache_dir or default_cache_dir()).absolute() / f"{self._source.name[:40]}-{key}"
        self._cache = PixelCache(folder, (size, size, 1 if grey else 3))
        self._paths, self._entries, skipped = self._fill(progress)

        self.skipped = len(skipped)
        self.skipped_csv = self._cache.write("skipped.csv", lambda stream: stream.write(_as_csv(skipped)))
        total = len(self._paths) + len(skipped)
        if 2 * len(skipped) > total:
            first = f"{skipped[0].file.name}: {skipped[0].reason}"
            why = f"{len(skipped)} of {total} pictures cannot be read (the first is {first})"
            raise DataError(str(source), why, f"see {self.skipped_csv}, and remove or replace those files")

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def class_names(self) -> tuple[str, ...]:
        return ()

    def __len__(self) -> int:
        return len(self._paths)

    def image(self, index: int) -> UInt8Array:
        pixels = self._cache.pixels(self._entries[index])
        return np.repeat(pixels, 3, axis=2) if self.grey else pixels

    def truth(self, index: int) -> Truth | None:  # noqa: ARG002 - the protocol asks for it
        return None

    def path(self, index: int) -> Path:
        """The file that image `index` was made from."""
        return self._paths[index]

    def placement(self, index: int) -> Placement:
        """Where image `index` lies in its file, to bring points back to the file's own pixels."""
        entry = self._entries[index]
        return self._place(self._paths[index], entry.original_width, entry.original_height)

    def _fill(self, progress: Progress | None) -> tuple[list[Path], list[Entry], list[Skipped]]:
        """Decode what the cache does not hold yet; then the files that can be read, their entries, and the others."""
        files = self._source.files
        stamps = {file: Stamp.of(file) for file in files}
        missing = [file for file in files if self._find(stamps[file]) is None]
        skipped = list(self._source.unreadable)
        done = len(files) - len(missing)
        if progress:
            progress(done, len(files))
        with ThreadPoolExecutor(_DECODING_THREADS) as pool:
            for start in range(0, len(missing), self._cache.shard_images):
                part = missing[start : start + self._cache.shard_images]
                rows: list[Row] = []
                for result in pool.map(self._decode, part, [stamps[file] for file in part]):
                    if isinstance(result, Row):
                        rows.append(result)
                    else:
                        skipped.append(result)
                    done += 1
                    if progress:
                        progress(done, len(files))
                if rows:
                    self._cache.add(rows)
        held = [(file, entry) for file in files if (entry := self._find(stamps[file])) is not None]
        return [file for file, _ in held], [entry for _, entry in held], skipped

    def _find(self, stamp: Stamp | None) -> Entry | None:
        return None if stamp is None else self._cache.find(stamp)

    def _decode(self, file: Path, stamp: Stamp | None) -> Row | Skipped:
        try:
            # Twice the size leaves the resampling enough to average over, and is still far below a photograph's own.
            picture = read_picture(file, smallest_side=2 * self.size)
        except DataError as error:
            return Skipped(file, error.why)
        if stamp is None:
            return Skipped(file, "the file appeared only while the others were being read")
        placement = self._place(file, picture.original_width, picture.original_height)
        pixels = render(picture, placement, self.size, self.grey)
        return Row(stamp, picture.original_width, picture.original_height, pixels)

    def _place(self, file: Path, width: int, height: int) -> Placement:
        name = zlib.crc32(os.fsencode(self._source.label(file)))
        return place(width, height, self.size, self.fit, np.random.default_rng((self.seed, name)))


def _as_csv(skipped: Sequence[Skipped]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["file", "reason"])
    writer.writerows((str(item.file), item.reason) for item in skipped)
    # A file name need not be valid Unicode.
    return text.getvalue().encode("utf-8", "backslashreplace")
