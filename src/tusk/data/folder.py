"""A folder of pictures as a dataset: square images of one size, decoded once into a cache."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import get_args

import numpy as np

from tusk.config.data import Contrast, Fit, Frames
from tusk.data.cache import Entry, PixelCache, Row, Stamp, default_cache_dir
from tusk.data.dataset import Truth, UInt8Array
from tusk.data.frames import with_frames
from tusk.data.framing import Framing, Placement, in_three
from tusk.data.images import Picture, read_frames, read_picture
from tusk.data.sources import PictureFile, Skipped, Source, Sources, find_files
from tusk.errors import DataError, UsageError, nearest
from tusk.names import csv_line

Progress = Callable[[int, int], None]  # images done, images in all

_CACHE_VERSION = 2  # raise it when the same file and options would give other bytes
_DECODING_THREADS = min(4, os.cpu_count() or 1)  # each may hold a picture of images.MAX_PIXELS


@dataclass(frozen=True)
class _Image:
    """One image of the dataset."""

    picture: PictureFile
    tile: int  # of the picture's
    entry: Entry


class FolderDataset:
    """Pictures from folders, files, patterns or lists (see `find_files`), as (size, size, 3) images.

    Every picture is decoded once, framed (see `Framing`) and kept in a cache on disk, which `image` reads.
    The files themselves are never changed. What cannot be read is left out and listed in `skipped_csv`; if that is more
    than half of the files, the source is not what it was taken for, and a DataError says so.

    With fit "random-crop" each picture has one crop, drawn from the seed and the file's name within the source. It is
    the same in every epoch, so that `image(i)` depends on `i` alone and `placement(i)` can tell where it came from;
    another seed gives other crops. Variation from epoch to epoch is left to the warps of training.

    With fit "tiles" a picture gives several images: squares that cover it, at its own scale times `scale`.

    With contrast "full" each picture, as a whole, is made as dark and as bright as it can be (see `to_full_contrast`).
    With `grey` the three channels are equal, and the cache holds one of them.

    With frames "all" every frame of a TIFF or GIF is a picture of its own, otherwise the first one stands for the file.
    """

    def __init__(
        self,
        source: Sources,
        *,
        size: int,
        fit: Fit = "centre-crop",
        scale: float = 1.0,
        contrast: Contrast = "own",
        grey: bool = False,
        cache_dir: Path | None = None,
        seed: int = 0,
        frames: Frames = "first",
        progress: Progress | None = None,
    ) -> None:
        if fit not in get_args(Fit):
            raise UsageError(f"fit '{fit}'", "is not known", nearest(fit, get_args(Fit)))
        if size < 1:
            raise UsageError(f"size {size}", "is not a number of pixels", "give at least 1")
        self.framing, self.seed = Framing(size, fit, scale, contrast, grey), seed
        self.found: Source = with_frames(find_files(source), frames)
        """All files that are meant, whether they can be read or not."""
        named = str(source if isinstance(source, str | os.PathLike) else source[0])
        if not self.found.files and not self.found.unreadable:
            raise DataError(named, "there are no pictures in it", "check the path, or name another folder")

        # The seed matters to random crops alone; all other fits share one cache.
        chance = seed if fit == "random-crop" else None
        options = [_CACHE_VERSION, str(self.found.origin), *astuple(self.framing), chance]
        key = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:16]
        folder = Path(cache_dir or default_cache_dir()).absolute() / f"{self.found.name[:40]}-{key}"
        self._cache = PixelCache(folder, (size, size, 1 if grey else 3))
        self._images, skipped = self._fill(progress)

        self.skipped, self.skipped_files = len(skipped), tuple(skipped)
        self.skipped_csv = self._cache.write("skipped.csv", lambda stream: stream.write(skipped_table(skipped)))
        total = self.pictures + len(skipped)
        if 2 * len(skipped) > total:
            first = f"{skipped[0].file.name}: {skipped[0].reason}"
            why = f"{len(skipped)} of {total} pictures cannot be read (the first is {first})"
            raise DataError(named, why, f"see {self.skipped_csv}, and remove or replace those files")

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def pictures(self) -> int:
        """How many could be read; with tiles each gives one image or more."""
        return sum(1 for image in self._images if image.tile == 0)

    @property
    def sizes(self) -> Counter[tuple[int, int]]:
        """How many of them have which width and height."""
        first = (image.entry for image in self._images if image.tile == 0)
        return Counter((entry.original_width, entry.original_height) for entry in first)

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
        return self._images[index].picture.path

    def source_files(self) -> tuple[Path, ...]:
        """Every file that the source names, those that cannot be read too."""
        return self.found.files

    def placement(self, index: int) -> Placement:
        """Where image `index` lies in its file, to bring points back to the file's own pixels."""
        image = self._images[index]
        return self._places(image.picture, image.entry.original_width, image.entry.original_height)[image.tile]

    def _fill(self, progress: Progress | None) -> tuple[list[_Image], list[Skipped]]:
        """Decode what the cache does not hold yet; then the images of all files that can be read, and the others."""
        pictures = list(self.found.pictures)
        stamps = {picture: _stamp(picture) for picture in pictures}
        missing = [picture for picture in pictures if not self._find(picture, stamps[picture])]
        skipped = list(self.found.unreadable)
        done = len(pictures) - len(missing)
        if progress:
            progress(done, len(pictures))
        # A large picture may give thousands of tiles: no more of them in memory than are decoded at once.
        together = _DECODING_THREADS if self.framing.fit == "tiles" else self._cache.shard_images
        with ThreadPoolExecutor(_DECODING_THREADS) as pool:
            for start in range(0, len(missing), together):
                part = missing[start : start + together]
                # The frames of a file one after the other: each needs those before it.
                of_files = [list(same) for _, same in groupby(part, lambda picture: picture.path)]
                rows: list[Row] = []
                for result in chain.from_iterable(pool.map(lambda same: self._decode(same, stamps), of_files)):
                    if isinstance(result, Skipped):
                        skipped.append(result)
                    else:
                        rows += result
                    done += 1
                    if progress:
                        progress(done, len(pictures))
                for first in range(0, len(rows), self._cache.shard_images):
                    self._cache.add(rows[first : first + self._cache.shard_images])
        return [image for picture in pictures for image in self._find(picture, stamps[picture])], skipped

    def _find(self, picture: PictureFile, stamp: Stamp | None) -> list[_Image]:
        """The images that the cache holds of a picture: all of them, or none."""
        first = None if stamp is None else self._cache.find(stamp)
        if first is None or stamp is None:
            return []
        if self.framing.fit != "tiles":
            return [_Image(picture, 0, first)]
        number = len(self._places(picture, first.original_width, first.original_height))
        entries = [self._cache.find(replace(stamp, tile=tile)) for tile in range(number)]
        found = [_Image(picture, tile, entry) for tile, entry in enumerate(entries) if entry is not None]
        return found if len(found) == number else []

    def _decode(
        self, pictures: Sequence[PictureFile], stamps: Mapping[PictureFile, Stamp | None]
    ) -> list[list[Row] | Skipped]:
        """Pictures of one file."""
        path, frames = pictures[0].path, [picture.frame for picture in pictures if picture.frame is not None]

        def rows(frame: int | None, picture: Picture) -> list[Row]:
            which = PictureFile(path, frame)
            stamp = stamps[which]
            if stamp is None:
                why = "the file appeared only while the others were being read"
                raise DataError(str(path), why, "start again")
            width, height = picture.original_width, picture.original_height
            tiles = self.framing.render(picture, self._places(which, width, height))
            return [Row(replace(stamp, tile=tile), width, height, pixels) for tile, pixels in enumerate(tiles)]

        made: Sequence[list[Row] | DataError]
        try:
            if frames:
                made = read_frames(path, frames, rows)
            else:
                made = [rows(None, read_picture(path, smallest_side=self.framing.smallest_side))]
        except DataError as error:
            made = [error] * len(pictures)
        return [
            Skipped(_named(picture), one.why) if isinstance(one, DataError) else one
            for picture, one in zip(pictures, made, strict=True)
        ]

    def _places(self, picture: PictureFile, width: int, height: int) -> list[Placement]:
        name = zlib.crc32(os.fsencode(self.found.label(*picture)))
        return self.framing.places(width, height, np.random.default_rng((self.seed, name)))


def _stamp(picture: PictureFile) -> Stamp | None:
    stamp = Stamp.of(picture.path)
    if stamp is None or picture.frame is None:
        return stamp
    return replace(stamp, path=f"{stamp.path}\0{picture.frame}")  # no path has that character


def _named(picture: PictureFile) -> Path:
    """A frame as it is called in results."""
    if picture.frame is None:
        return picture.path
    return picture.path.with_name(f"{picture.path.name}#{picture.frame + 1}")


def skipped_table(skipped: Sequence[Skipped]) -> bytes:
    """As CSV."""
    return b"".join(csv_line(row) for row in [("file", "reason"), *((str(each.file), each.reason) for each in skipped)])
