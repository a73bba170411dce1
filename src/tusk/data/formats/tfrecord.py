"""Reads TFRecord files, compressed with gzip or not, without TensorFlow.

A record is: length (uint64), masked CRC32C of the length (uint32), the data, masked CRC32C of the data (uint32),
all little-endian. Both checksums are checked, so that a damaged download is found and not trained on.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from tusk.errors import DataError, UsageError

_HEADER = struct.Struct("<QI")  # length, its checksum
_FOOTER = struct.Struct("<I")  # the data's checksum
_GZIP_MAGIC = b"\x1f\x8b"
# Far above any image dataset's record (CLEVR's are 3.2 MB); a longer one would only exhaust the memory.
MAX_RECORD_BYTES = 256 * 1024 * 1024

_FETCH_AGAIN = "the file is damaged: fetch it again"
_FETCH_WHOLE = "the file is incomplete: fetch it again, whole"


@dataclass(frozen=True)
class Record:
    """One record's bytes, and where they stood, for messages."""

    data: bytes
    path: Path
    number: int  # the first record of a file is 0
    place: int  # of the record's first byte, in the uncompressed stream

    @property
    def where(self) -> str:
        return f"{self.path}, record {self.number} (at byte {self.place})"


def read_records(path: Path | str) -> Iterator[Record]:
    """All records of a file in order, one in memory at a time. Raises DataError where the file is damaged."""
    path = Path(path)
    checksum = masked_crc32c()
    try:
        with path.open("rb") as raw:
            if _is_gzip(raw, checksum):
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield from _records(path, cast(BinaryIO, unpacked), checksum)
            else:
                yield from _records(path, raw, checksum)
    except FileNotFoundError as error:
        raise DataError(str(path), "does not exist", "check the path") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(str(path), f"cannot be read ({reason})", "check that it is a readable file") from error


def masked_crc32c() -> Callable[[bytes], int]:
    """The checksum function of TFRecord: CRC32C, rotated and shifted so that checksums of checksums stay strong."""
    try:
        import google_crc32c
    except ImportError as error:
        fix = "install tusk with its 'data' extra: pip install 'tusk-keypoints[data]'"
        raise UsageError("google-crc32c", "is not installed", fix) from error

    def checksum(data: bytes) -> int:
        crc = int(google_crc32c.value(data))
        return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    return checksum


def _is_gzip(raw: BinaryIO, checksum: Callable[[bytes], int]) -> bool:
    head = raw.read(_HEADER.size)
    raw.seek(0)
    if not head.startswith(_GZIP_MAGIC):
        return False
    # A plain file whose first record is 35,615 bytes long begins like a gzip file; only its checksum tells.
    return len(head) < _HEADER.size or checksum(head[:8]) != _HEADER.unpack(head)[1]


def _records(path: Path, stream: BinaryIO, checksum: Callable[[bytes], int]) -> Iterator[Record]:
    number, place = 0, 0
    while header := _read(path, number, place, stream, _HEADER.size):
        if len(header) < _HEADER.size:
            raise _truncated(path, number, place, "its header", len(header), _HEADER.size)
        length, length_crc = _HEADER.unpack(header)
        if checksum(header[:8]) != length_crc:
            why = f"{_at(number, place)}: the checksum (CRC) of the record's length is wrong"
            raise DataError(
                str(path), why, _FETCH_AGAIN if number else "check that it is a TFRecord file, and complete"
            )
        if length > MAX_RECORD_BYTES:
            why = f"{_at(number, place)}: the record claims {length:,} bytes; the limit is {MAX_RECORD_BYTES:,}"
            raise DataError(str(path), why, "use a file of images, one per record")
        body = _read(path, number, place, stream, length + _FOOTER.size)
        if len(body) < length + _FOOTER.size:
            raise _truncated(path, number, place, "its data", len(body), length + _FOOTER.size)
        data = body[:length]
        if checksum(data) != _FOOTER.unpack_from(body, length)[0]:
            why = f"{_at(number, place)}: the checksum (CRC) of the record's data is wrong"
            raise DataError(str(path), why, _FETCH_AGAIN)
        yield Record(data, path, number, place)
        number, place = number + 1, place + _HEADER.size + len(body)


def _read(path: Path, number: int, place: int, stream: BinaryIO, count: int) -> bytes:
    """`count` bytes, or fewer at the end of the file; what gzip finds wrong becomes an error that says where."""
    try:
        return stream.read(count)
    except EOFError as error:
        raise DataError(str(path), f"{_at(number, place)}: the compressed data is truncated", _FETCH_WHOLE) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        why = f"{_at(number, place)}: the compressed data is damaged ({error})"
        raise DataError(str(path), why, _FETCH_AGAIN) from error


def _truncated(path: Path, number: int, place: int, part: str, found: int, wanted: int) -> DataError:
    why = f"{_at(number, place)}: truncated, {part} ends after {found:,} of {wanted:,} bytes"
    return DataError(str(path), why, _FETCH_WHOLE)


def _at(number: int, place: int) -> str:
    return f"record {number} at byte {place:,}"
