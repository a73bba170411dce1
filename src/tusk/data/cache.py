"""Decoded images on disk, memory-mapped: what a folder of pictures becomes after it has been read once.

A cache is a folder of shards. Each shard is a `.npy` file of images and a `.json` file that says which picture file, of
what size and time, each row was made from. Shards are only ever added, under a temporary name that is then renamed, the
`.json` last; so an interrupted build keeps its finished shards, two processes that build at once at worst do the same
work twice, and a picture that has changed since is simply not found and decoded again. The whole folder may be deleted
whenever no program is using it.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tusk.data.dataset import UInt8Array
from tusk.errors import DataError, UserError

_SHARD_IMAGES = 256
_SHARD_BYTES = 64 << 20
_UNFINISHED = "unfinished-"
_DAY = 86_400.0


def default_cache_dir() -> Path:
    """`tusk` in the user's cache folder: $XDG_CACHE_HOME if that is set, otherwise ~/.cache."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return base / "tusk"


@dataclass(frozen=True)
class Stamp:
    """A picture file as it was at one moment; a file that differs in any of these is another picture."""

    path: str
    size: int
    modified: int  # nanoseconds
    tile: int = 0  # which tile of it, where it gives several

    @staticmethod
    def of(path: Path) -> Stamp | None:
        """None where the file is not to be found."""
        try:
            status = path.stat()
        except (OSError, ValueError):
            return None
        return Stamp(str(path), status.st_size, status.st_mtime_ns)


@dataclass(frozen=True)
class Row:
    """One decoded image on its way into the cache."""

    stamp: Stamp
    original_width: int
    original_height: int
    pixels: UInt8Array


@dataclass(frozen=True)
class Entry:
    """Where the cache holds an image."""

    shard: str
    row: int
    original_width: int
    original_height: int


class PixelCache:
    """Images of one shape, found by the stamp of the file that they were made from."""

    def __init__(self, folder: Path, shape: tuple[int, int, int]) -> None:
        self.folder, self.shape = folder, shape
        # Few enough that an interruption loses little work, many enough that a large folder makes few files.
        self.shard_images = max(1, min(_SHARD_IMAGES, _SHARD_BYTES // int(np.prod(shape))))
        self._entries: dict[Stamp, Entry] = {}
        self._maps: dict[str, UInt8Array] = {}
        with self._writable():
            folder.mkdir(parents=True, exist_ok=True)
        self._clear_remains()
        for index in sorted(folder.glob("*.json")):
            self._read_index(index)

    def find(self, stamp: Stamp) -> Entry | None:
        return self._entries.get(stamp)

    def pixels(self, entry: Entry) -> UInt8Array:
        """(H, W, C), read-only; read from disk when it is used."""
        if entry.shard not in self._maps:
            file = self.folder / f"{entry.shard}.npy"
            try:
                self._maps[entry.shard] = _mapped(file)
            except (OSError, EOFError, ValueError) as error:
                raise DataError(str(file), "this part of the cache is gone", "start again to rebuild it") from error
        image: UInt8Array = self._maps[entry.shard][entry.row]
        return image

    def add(self, rows: Sequence[Row]) -> None:
        """Write one shard. Its name follows from what is in it, so whoever writes it again writes the same."""
        files = [(*astuple(row.stamp), row.original_width, row.original_height) for row in rows]
        text = json.dumps(files).encode()
        shard = hashlib.sha256(text).hexdigest()[:24]
        images = np.stack([row.pixels for row in rows])
        self.write(f"{shard}.npy", lambda stream: np.save(stream, images, allow_pickle=False))
        self.write(f"{shard}.json", lambda stream: stream.write(text))
        self._maps.pop(shard, None)
        for number, row in enumerate(rows):
            self._entries[row.stamp] = Entry(shard, number, row.original_width, row.original_height)

    def write(self, name: str, fill: Callable[[IO[bytes]], Any]) -> Path:
        """Make or replace a file of the cache's folder in one step: others see the old file or the whole new one."""
        with self._writable():
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=_UNFINISHED)
            try:
                with os.fdopen(handle, "wb") as stream:
                    fill(stream)
                    stream.flush()
                    os.fsync(stream.fileno())
                Path(temporary).replace(self.folder / name)
            except BaseException:
                with suppress(OSError):
                    Path(temporary).unlink()
                raise
        return self.folder / name

    def _read_index(self, index: Path) -> None:
        """Take up one shard; one that is damaged or incomplete counts as absent, and its pictures are decoded again."""
        try:
            files = json.loads(index.read_bytes())
            stamped = [
                (Stamp(str(path), int(size), int(at), int(tile)), int(w), int(h))
                for path, size, at, tile, w, h in files
            ]
            images = _mapped(index.with_suffix(".npy"))
        except (OSError, EOFError, ValueError, TypeError):
            return
        if images.shape != (len(stamped), *self.shape) or images.dtype != np.uint8:
            return
        self._maps[index.stem] = images
        for row, (stamp, width, height) in enumerate(stamped):
            self._entries[stamp] = Entry(index.stem, row, width, height)

    def _clear_remains(self) -> None:
        """Remove what killed processes left half written; a file of today may still be in the making."""
        for remains in self.folder.glob(f"{_UNFINISHED}*"):
            with suppress(OSError):
                if time.time() - remains.stat().st_mtime > _DAY:
                    remains.unlink()

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = f"the cache cannot be written ({error.strerror or error})"
            raise UserError(str(self.folder), why, "free space there or name another folder for the cache") from error

    def __getstate__(self) -> dict[str, Any]:
        """Without the maps: pickled, a memory map would be copied whole; a worker opens its own."""
        return self.__dict__ | {"_maps": {}}


def _mapped(file: Path) -> UInt8Array:
    # As a plain array: every slice of a numpy memmap object costs several times as much.
    return np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
