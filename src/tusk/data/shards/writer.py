"""Packs pictures into shards."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tusk.data.images import read_picture
from tusk.data.shards.format import MANIFEST, Manifest, ShardInfo, read_index, read_names, tail_of
from tusk.data.sources import Skipped, Source
from tusk.errors import DataError, UsageError
from tusk.io import atomic_write

Progress = Callable[[int, int], None]
_TOGETHER = 64  # pictures that are read ahead
_READERS = 4
_QUALITY = 95  # of JPEG, where a picture is scaled down


@dataclass(frozen=True)
class Packed:
    """What was packed."""

    manifest: Manifest
    skipped: tuple[Skipped, ...]


def pack_pictures(
    source: Source,
    out: Path,
    *,
    shard_bytes: int = 1 << 30,
    side: int | None = None,
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> Packed:
    """The pictures of a source into a folder of shards of about `shard_bytes` each.

    They come in a random order, so that each shard is a fair part of all. side: pictures whose shorter side is longer
    are scaled down to it and stored as JPEG; all others are stored as they are. Started again after it was ended,
    it keeps the shards that are whole. What cannot be decoded is left out.
    """
    if shard_bytes < 1 or (side is not None and side < 1):
        raise UsageError("shard size and side", "must be above 0", "give at least 1")
    if (out / MANIFEST).exists():
        raise UsageError(str(out), "there are shards in it already", "name another folder, or delete it")
    files = list(source.files)
    files = [files[place] for place in np.random.default_rng(seed).permutation(len(files))]
    out.mkdir(parents=True, exist_ok=True)
    for rest in out.glob(".*.part"):
        rest.unlink(missing_ok=True)
    labels = [source.label(file) for file in files]
    shards: list[ShardInfo] = []
    skipped = list(source.unreadable)
    done = 0
    while done < len(files):
        path = out / f"shard-{len(shards):05d}.bin"
        kept = _kept(path, labels, done)
        if kept is None:
            made = _Shard()
            for content in _read(files, done, side):
                done += 1
                progress(done, len(files))
                if isinstance(content, Skipped):
                    skipped.append(content)
                    continue
                made.add(labels[done - 1], content)
                if made.size >= shard_bytes:
                    break
            if not made.names:
                break
            atomic_write(path, made.to_bytes())
            kept = len(made.names), made.size, done
        else:
            done = kept[2]
            progress(done, len(files))
        shards.append(ShardInfo(path.name, kept[0], kept[1]))
    if not shards:
        raise DataError(str(source.origin), "there is no picture in it that can be read", "name another source")
    manifest = Manifest(source.name, tuple(shards))
    atomic_write(out / MANIFEST, manifest.to_bytes())
    return Packed(manifest, tuple(skipped))


class _Shard:
    """A shard on its way."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.names: list[str] = []
        self.offsets = [0]

    @property
    def size(self) -> int:
        return self.offsets[-1]

    def add(self, name: str, content: bytes) -> None:
        self.parts.append(content)
        self.names.append(name)
        self.offsets.append(self.offsets[-1] + len(content))

    def to_bytes(self) -> bytes:
        return b"".join([*self.parts, tail_of(self.offsets, self.names)])


def _kept(path: Path, names: Sequence[str], begin: int) -> tuple[int, int, int] | None:
    """A shard that an earlier start wrote: its pictures, their bytes, and up to which of the names it goes.

    None where there is none, or it is of other pictures than those from `begin` on."""
    try:
        content = path.read_bytes()
        index = read_index(content, str(path))
        stored = read_names(content, index, str(path))
    except (OSError, DataError):
        return None
    place = begin
    for name in stored:  # in the same order; those between them could not be read
        while place < len(names) and names[place] != name:
            place += 1
        if place == len(names):
            return None
        place += 1
    return len(index), int(index.offsets[-1]), place


def _read(files: Sequence[Path], begin: int, side: int | None) -> Iterator[bytes | Skipped]:
    with ThreadPoolExecutor(_READERS) as pool:
        for start in range(begin, len(files), _TOGETHER):
            yield from pool.map(lambda file: _content(file, side), files[start : start + _TOGETHER])


def _content(file: Path, side: int | None) -> bytes | Skipped:
    """The file of a picture, which is decoded once to see that it can be."""
    try:
        picture = read_picture(file, smallest_side=side)
        shorter = min(picture.original_width, picture.original_height)
        if side is None or shorter <= side:
            return file.read_bytes()
        scale = side / shorter
        size = max(1, round(picture.original_width * scale)), max(1, round(picture.original_height * scale))
        box = picture.box(0, 0, picture.original_width, picture.original_height)
        small = Image.fromarray(picture.pixels).resize(size, Image.Resampling.BICUBIC, box=box)
        stream = io.BytesIO()
        small.save(stream, "JPEG", quality=_QUALITY, subsampling=0)
        return stream.getvalue()
    except DataError as error:
        return Skipped(file, error.why)
    except OSError as error:
        return Skipped(file, error.strerror or str(error))
