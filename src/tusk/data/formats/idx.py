"""Reads and writes idx files, MNIST's format: two zeros, type, number of axes, lengths, values; gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from io import BufferedReader
from pathlib import Path

import numpy as np

from tusk.data.dataset import UInt8Array
from tusk.errors import DataError

# No idx file of MNIST or its relatives comes near this; a header that claims more is damaged or hostile.
_LARGEST = 1 << 30
_UNSIGNED_BYTE = 0x08


def encode_idx(values: UInt8Array) -> bytes:
    """An array of bytes as the content of an idx file: two zeros, type, number of axes, lengths, values."""
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, _UNSIGNED_BYTE, values.ndim, *values.shape) + values.tobytes()


def read_idx(path: Path, axes: int) -> UInt8Array:
    """Reads an idx file of bytes, gzipped or not, that must have this many axes."""
    again = "fetch the file again"
    try:
        with _opened(path) as file:
            header = file.read(4 + 4 * axes)
            if len(header) < 4 + 4 * axes:
                raise DataError(str(path), f"ends after {len(header)} bytes, inside its header", again)
            magic, *shape = struct.unpack(f">{1 + axes}I", header)
            expected = _UNSIGNED_BYTE << 8 | axes
            if magic != expected:
                raise DataError(
                    str(path),
                    f"has the magic number {magic}, not {expected}",
                    "use the idx file that its name says it is",
                )
            length = math.prod(shape)
            if length > _LARGEST:
                raise DataError(str(path), f"claims {length} bytes of content", again)
            content = file.read(length + 1)  # one more, to notice a tail
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(str(path), f"cannot be read ({error})", again) from error
    if len(content) != length:
        relation = "more" if len(content) > length else f"{len(content)}"
        raise DataError(str(path), f"should hold {length} bytes after its header and holds {relation}", again)
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
