"""One shard, and the list of all: how they are laid out, read and checked."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tusk.data.dataset import Int64Array
from tusk.errors import DataError

MANIFEST = "shards.json"
FORMAT, VERSION = "tusk-shards", 1
MARK = b"TUSKSHRD"
TAIL = struct.Struct("<qq8s")  # start of the offsets, pictures, mark
_DAMAGED = "pack the pictures again, or copy the file again"


@dataclass(frozen=True)
class ShardInfo:
    """A shard as the list of all has it."""

    file: str
    pictures: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """The list of all shards."""

    name: str
    shards: tuple[ShardInfo, ...]

    def to_bytes(self) -> bytes:
        values = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "shards": [asdict(one) for one in self.shards],
        }
        return json.dumps(values, indent=1).encode()

    @staticmethod
    def of(content: bytes, where: str) -> Manifest:
        try:
            values: dict[str, Any] = json.loads(content)
            if values.get("format") != FORMAT:
                raise DataError(where, "it is no list of tusk's shards", "name a folder that 'tusk data pack' wrote")
            if values["version"] > VERSION:
                raise DataError(where, "it is newer than this tusk reads", "upgrade tusk")
            shards = tuple(
                ShardInfo(str(one["file"]), int(one["pictures"]), int(one["bytes"])) for one in values["shards"]
            )
            if any("/" in one.file or "\\" in one.file or one.pictures < 1 for one in shards):
                raise ValueError("it names what cannot be a shard")
            return Manifest(str(values["name"]), shards)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(where, f"the list of shards is damaged ({error})", _DAMAGED) from error


@dataclass(frozen=True)
class Index:
    """Where the pictures of a shard begin and end."""

    offsets: Int64Array  # (pictures + 1,)
    names_at: int  # where the names begin

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_index(content: Any, where: str) -> Index:
    """content: the bytes of a shard, or a map of them."""
    size = len(content)
    start, pictures, mark = TAIL.unpack(content[size - TAIL.size :]) if size >= TAIL.size else (0, 0, b"")
    end = start + 8 * (pictures + 1)
    if mark != MARK or not (start >= 0 and pictures > 0 and end <= size - TAIL.size):
        raise DataError(where, "it is no shard, or was cut short", _DAMAGED)
    offsets = np.frombuffer(content[start:end], "<i8").astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != start or bool((np.diff(offsets) <= 0).any()):
        raise DataError(where, "its index is damaged", _DAMAGED)
    return Index(offsets, end)


def read_names(content: Any, index: Index, where: str) -> list[str]:
    """What the pictures of a shard were called."""
    try:
        names = json.loads(bytes(content[index.names_at : len(content) - TAIL.size]))
        return [str(name) for name in names]
    except (ValueError, TypeError) as error:
        raise DataError(where, f"its names are damaged ({error})", _DAMAGED) from error


def tail_of(offsets: list[int], names: list[str]) -> bytes:
    """What comes after the pictures of a shard."""
    listed = np.array(offsets, "<i8").tobytes() + json.dumps(names).encode()
    return listed + TAIL.pack(offsets[-1], len(names), MARK)
