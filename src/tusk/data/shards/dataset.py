"""A folder of shards, here or behind a URL, as a dataset."""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from tusk.data.dataset import Int64Array, Truth, UInt8Array
from tusk.data.images import Picture, decode_picture
from tusk.data.remote import is_url, local_copy, remote_exists
from tusk.data.shards.format import MANIFEST, Index, Manifest, read_index
from tusk.errors import DataError

_OPEN = 64  # shards at a time
_FOR_SAMPLES = 2  # shards: the pictures of each are a random part of all


def is_shards(source: str | None) -> bool:
    """Whether there are shards in that folder or behind that URL."""
    if source is None:
        return False
    if is_url(source):
        return remote_exists(f"{source.rstrip('/')}/{MANIFEST}")
    return (Path(source) / MANIFEST).is_file()


class ShardDataset:
    """Pictures in shards, numbered from the first of the first shard on. May be pickled; each process opens its own.

    Shards behind a URL are copied into the cache when they are first wanted (see `tusk.data.remote`).
    """

    class_names: tuple[str, ...] = ()

    def __init__(self, where: str) -> None:
        self.where = where.rstrip("/") if is_url(where) else str(Path(where).absolute())
        manifest = Manifest.of(self._path(MANIFEST, fresh=True).read_bytes(), self.where)
        self.name = manifest.name
        self.shard_sizes = tuple(one.pictures for one in manifest.shards)
        self._shards = manifest.shards
        self._begins = np.concatenate([[0], np.cumsum(self.shard_sizes)]).astype(np.int64)
        self._open: OrderedDict[int, tuple[mmap.mmap, Index]] = OrderedDict()
        self._process = os.getpid()

    def __len__(self) -> int:
        return int(self._begins[-1])

    def image(self, index: int) -> UInt8Array:
        return self.picture(index, None).pixels

    def picture(self, index: int, smallest_side: int | None) -> Picture:
        """The picture, decoded no smaller than that."""
        content = self.content(index)
        return decode_picture(content, f"{self.where}, picture {index}", smallest_side=smallest_side)

    def content(self, index: int) -> bytes:
        """The picture's file."""
        if not 0 <= index < len(self):
            raise IndexError(f"{self.where} has {len(self):,} pictures, not one at {index}")
        shard = int(np.searchsorted(self._begins, index, side="right")) - 1
        held, listed = self._shard(shard)
        place = index - int(self._begins[shard])
        return held[int(listed.offsets[place]) : int(listed.offsets[place + 1])]

    def truth(self, index: int) -> Truth | None:  # noqa: ARG002 - the protocol asks for it
        return None

    def sample_places(self, count: int) -> Int64Array:
        """Pictures for validation: from the first shards alone, so that a million need not be fetched for it."""
        last = int(self._begins[min(_FOR_SAMPLES, len(self._shards))])
        return np.arange(min(count, last)) * last // max(1, min(count, last))

    def source_files(self) -> tuple[Path, ...]:
        """What a run compares when it goes on: the list of shards, which has all sizes."""
        return (self._path(MANIFEST),)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": OrderedDict()}

    def _shard(self, number: int) -> tuple[mmap.mmap, Index]:
        if self._process != os.getpid():  # after a fork: the parent closes its own
            self._open, self._process = OrderedDict(), os.getpid()
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        info = self._shards[number]
        path = self._path(info.file)
        try:
            with path.open("rb") as file:
                held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise DataError(str(path), f"the shard cannot be read ({error})", "copy or pack it again") from error
        listed = read_index(held, str(path))
        if len(listed) != info.pictures:
            why = f"it holds {len(listed)} pictures, but {MANIFEST} says {info.pictures}"
            raise DataError(str(path), why, "copy or pack it again")
        self._open[number] = held, listed
        if len(self._open) > _OPEN:
            self._open.popitem(last=False)
        return self._open[number]

    def _path(self, file: str, *, fresh: bool = False) -> Path:
        if is_url(self.where):
            return local_copy(f"{self.where}/{file}", fresh=fresh)
        path = Path(self.where) / file
        if not path.is_file():
            raise DataError(str(path), "there is no such file", "copy the folder of shards again")
        return path
