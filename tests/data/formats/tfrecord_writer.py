"""Writes TFRecord files of tf.train.Example, in the encoding of the multi-object datasets, for the tests."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import google_crc32c
import numpy as np
import numpy.typing as npt


def varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def one_byte_each(values: npt.ArrayLike) -> bytes:
    """A feature: a list with one string of one byte for every element."""
    flat = np.asarray(values, np.uint8).ravel()
    triples = np.empty((flat.size, 3), np.uint8)
    triples[:, 0], triples[:, 1], triples[:, 2] = 0x0A, 1, flat
    return field(1, triples.tobytes())


def strings(values: Sequence[bytes]) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def floats(values: npt.ArrayLike, packed: bool = True) -> bytes:
    flat = np.asarray(values, "<f4").ravel()
    if packed:
        return field(2, field(1, flat.tobytes()))
    return field(2, b"".join(varint(1 << 3 | 5) + value.tobytes() for value in flat))


def integers(values: Sequence[int], packed: bool = True) -> bytes:
    if packed:
        return field(3, field(1, b"".join(varint(value) for value in values)))
    return field(3, b"".join(varint(1 << 3) + varint(value) for value in values))


def example(**features: bytes) -> bytes:
    entries = (field(1, field(1, name.encode()) + field(2, feature)) for name, feature in features.items())
    return field(1, b"".join(entries))


def masked_crc(data: bytes) -> int:
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def frame(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record))


def write_records(path: Path, records: Iterable[bytes], compress: bool = False) -> Path:
    stream = b"".join(frame(record) for record in records)
    path.write_bytes(gzip.compress(stream, 1) if compress else stream)
    return path
