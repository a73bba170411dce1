"""How many pictures a TIFF or GIF holds, from its structure alone: no pixel is decoded, and no file takes long.

The pages of a TIFF that are smaller copies or masks of another page are not pictures of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MAX_FRAMES = 10_000  # in one file

_SUBFILE_TYPE = 254  # TIFF's tag: bit 0 a smaller copy, bit 2 a transparency mask of another page
_MOST_TAGS = 4096  # of one page; real ones have a few dozen
_MOST_BLOCKS = 4_000_000  # of at most 255 bytes each, in a GIF


def find_frames(path: Path) -> tuple[int, ...]:
    """The numbers, from 0, of the frames that are pictures, at most one more than `MAX_FRAMES`.

    A file that is damaged or of another format has one: reading it will tell what is wrong with it.
    """
    try:
        if not path.is_file():
            return (0,)
        with path.open("rb") as stream:
            header = stream.read(16)
            if header.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
                return tuple(_tiff_pages(stream, header)) or (0,)
            if header.startswith((b"GIF87a", b"GIF89a")):
                return tuple(range(sum(1 for _ in gif_frames(stream)))) or (0,)
    except (OSError, struct.error, ValueError):
        pass
    return (0,)


def _tiff_pages(stream: IO[bytes], header: bytes) -> Iterator[int]:
    """Along the chain of pages, each of which says where the next one is; a chain that bites its tail ends there."""
    order = "<" if header.startswith(b"II") else ">"
    big = b"+" in header[2:4]
    # Of the classic and of the 64-bit kind: where the first page is told, number of tags, one tag, the next page.
    start, count_kind, tag_bytes, next_kind = (8, "Q", 20, "Q") if big else (4, "H", 12, "I")
    (place,) = struct.unpack_from(order + next_kind, header, start)
    seen: set[int] = set()
    given = 0
    while place and place not in seen and given <= MAX_FRAMES and len(seen) <= 2 * MAX_FRAMES:
        stream.seek(place)
        head = stream.read(struct.calcsize(order + count_kind))
        if len(head) < struct.calcsize(order + count_kind):
            return  # cut short: what was found so far is there
        (tags,) = struct.unpack(order + count_kind, head)
        if tags > _MOST_TAGS:
            return
        body = stream.read(tags * tag_bytes)
        after = stream.read(struct.calcsize(order + next_kind))
        if len(body) < tags * tag_bytes:
            return
        if not _is_copy(body, tag_bytes, order):
            yield len(seen)
            given += 1
        seen.add(place)
        if len(after) < struct.calcsize(order + next_kind):
            return
        (place,) = struct.unpack(order + next_kind, after)


def _is_copy(body: bytes, tag_bytes: int, order: str) -> bool:
    for start in range(0, len(body), tag_bytes):
        if struct.unpack_from(f"{order}H", body, start)[0] == _SUBFILE_TYPE:
            (value,) = struct.unpack_from(f"{order}I", body, start + tag_bytes - (8 if tag_bytes == 20 else 4))
            return bool(value & 0b101)
    return False


@dataclass(frozen=True)
class GifFrame:
    """How far a frame of a GIF reaches from the top-left corner."""

    right: int
    bottom: int


def gif_frames(stream: IO[bytes]) -> Iterator[GifFrame]:
    """From the start of the file to its end, or to where it is cut short; at most one more than `MAX_FRAMES`."""
    stream.seek(0)
    header = stream.read(13)
    if len(header) < 13:
        return
    stream.seek(13 + _table(header[10]))
    blocks = given = 0
    while blocks < _MOST_BLOCKS and given <= MAX_FRAMES:
        kind = stream.read(1)
        if kind in (b"", b";"):
            return
        if kind == b",":
            place = stream.read(9)
            if len(place) < 9:
                return
            left, top, width, height, flags = struct.unpack("<HHHHB", place)
            stream.seek(_table(flags) + 1, 1)  # its own colours, and one byte for the decoder
            yield GifFrame(left + width, top + height)
            given += 1
        elif kind == b"!":
            stream.read(1)
        else:
            blocks += 1
            continue  # stray bytes are passed over, as readers do
        while (length := stream.read(1)) not in (b"", b"\0"):
            stream.seek(length[0], 1)
            blocks += 1
            if blocks >= _MOST_BLOCKS:
                return


def _table(flags: int) -> int:
    """Bytes of the table of colours that follows, if there is one."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0
