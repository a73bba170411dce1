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
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from tusk.config.data import Contrast, Fit
from tusk.data.cache import Entry, PixelCache, Row, Stamp, default_cache_dir
from tusk.data.dataset import Truth, UInt8Array
from tusk.data.framing import Framing, Placement, in_three
from tusk.data.images import read_picture
from tusk.data.sources import Skipped, find_files
from tusk.errors import DataError, UsageError, nearest

Progress = Callable[[int, int], None]  # images done, images in all

_CACHE_VERSION = 2  # raise it when the same file and options would give other bytes
_DECODING_THREADS = min(4, os.cpu_count() or 1)  # each may hold a picture of images.MAX_PIXELS


@dataclass(frozen=True)
class _Image:
    """One image of the dataset."""

    file: Path
    tile: int  # of the file's
    entry: Entry


class FolderDataset:
    """Pictures from a folder, a file, a pattern or a list (see `find_files`), as (size, size, 3) images.

    Every picture is decoded once, framed (see `Framing`) and kept in a cache on disk, which `image` reads.
    The files themselves are never changed. What cannot be read is left out and listed in `skipped_csv`; if that is more
    than half of the files, the source is not what it was taken for, and a DataError says so.

    With fit "random-crop" each picture has one crop, drawn from the seed and the file's name within the source. It is
    the same in every epoch, so that `image(i)` depends on `i` alone and `placement(i)` can tell where it came from;
    another seed gives other crops. Variation from epoch to epoch is left to the warps of training.

    With fit "tiles" a picture gives several images: squares that cover it, at its own scale times `scale`.

    With contrast "full" each picture, as a whole, is made as dark and as bright as it can be (see `to_full_contrast`).
    With `grey` the three channels are equal, and the cache holds one of them.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        size: int,
        fit: Fit = "centre-crop",
        scale: float = 1.0,
        contrast: Contrast = "own",
        grey: bool = False,
        cache_dir: Path | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        if fit not in get_args(Fit):
            raise UsageError(f"fit '{fit}'", "is not known", nearest(fit, get_args(Fit)))
        if size < 1:
            raise UsageError(f"size {size}", "is not a number of pixels", "give at least 1")
        self.framing, self.seed = Framing(size, fit, scale, contrast, grey), seed
        self._source = find_files(source)
        if not self._source.files and not self._source.unreadable:
            raise DataError(str(source), "there are no pictures in it", "check the path, or name another folder")

        # The seed matters to random crops alone; all other fits share one cache.
        chance = seed if fit == "random-crop" else None
        options = [_CACHE_VERSION, str(self._source.origin), *astuple(self.framing), chance]
        key = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:16]
        folder = Path(cache_dir or default_cache_dir()).absolute() / f"{self._source.name[:40]}-{key}"
        self._cache = PixelCache(folder, (size, size, 1 if grey else 3))
        self._images, skipped = self._fill(progress)

        self.skipped = len(skipped)
        self.skipped_csv = self._cache.write("skipped.csv", lambda stream: stream.write(_as_csv(skipped)))
        total = len({image.file for image in self._images}) + len(skipped)
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
        return len(self._images)

    def image(self, index: int) -> UInt8Array:
        return in_three(self._cache.pixels(self._images[index].entry))

    def truth(self, index: int) -> Truth | None:  # noqa: ARG002 - the protocol asks for it
        return None

    def path(self, index: int) -> Path:
        """The file that image `index` was made from."""
        return self._images[index].file

    def placement(self, index: int) -> Placement:
        """Where image `index` lies in its file, to bring points back to the file's own pixels."""
        image = self._images[index]
        return self._places(image.file, image.entry.original_width, image.entry.original_height)[image.tile]

    def _fill(self, progress: Progress | None) -> tuple[list[_Image], list[Skipped]]:
        """Decode what the cache does not hold yet; then the images of all files that can be read, and the others."""
        files = self._source.files
        stamps = {file: Stamp.of(file) for file in files}
        missing = [file for file in files if not self._find(file, stamps[file])]
        skipped = list(self._source.unreadable)
        done = len(files) - len(missing)
        if progress:
            progress(done, len(files))
        # A large picture may give thousands of tiles: no more of them in memory than are decoded at once.
        together = _DECODING_THREADS if self.framing.fit == "tiles" else self._cache.shard_images
        with ThreadPoolExecutor(_DECODING_THREADS) as pool:
            for start in range(0, len(missing), together):
                part = missing[start : start + together]
                rows: list[Row] = []
                for result in pool.map(self._decode, part, [stamps[file] for file in part]):
                    if isinstance(result, Skipped):
                        skipped.append(result)
                    else:
                        rows += result
                    done += 1
                    if progress:
                        progress(done, len(files))
                for first in range(0, len(rows), self._cache.shard_images):
                    self._cache.add(rows[first : first + self._cache.shard_images])
        return [image for file in files for image in self._find(file, stamps[file])], skipped

    def _find(self, file: Path, stamp: Stamp | None) -> list[_Image]:
        """The images that the cache holds of a file: all of them, or none."""
        first = None if stamp is None else self._cache.find(stamp)
        if first is None or stamp is None:
            return []
        if self.framing.fit != "tiles":
            return [_Image(file, 0, first)]
        number = len(self._places(file, first.original_width, first.original_height))
        entries = [self._cache.find(replace(stamp, tile=tile)) for tile in range(number)]
        found = [_Image(file, tile, entry) for tile, entry in enumerate(entries) if entry is not None]
        return found if len(found) == number else []

    def _decode(self, file: Path, stamp: Stamp | None) -> list[Row] | Skipped:
        try:
            picture = read_picture(file, smallest_side=self.framing.smallest_side)
        except DataError as error:
            return Skipped(file, error.why)
        if stamp is None:
            return Skipped(file, "the file appeared only while the others were being read")
        width, height = picture.original_width, picture.original_height
        tiles = self.framing.render(picture, self._places(file, width, height))
        return [Row(replace(stamp, tile=tile), width, height, pixels) for tile, pixels in enumerate(tiles)]

    def _places(self, file: Path, width: int, height: int) -> list[Placement]:
        name = zlib.crc32(os.fsencode(self._source.label(file)))
        return self.framing.places(width, height, np.random.default_rng((self.seed, name)))


def _as_csv(skipped: Sequence[Skipped]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["file", "reason"])
    writer.writerows((str(item.file), item.reason) for item in skipped)
    # A file name need not be valid Unicode.
    return text.getvalue().encode("utf-8", "backslashreplace")
