"""MNIST's idx files, and `mnist-hard`: canvases of nine MNIST digits."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from io import BufferedReader
from pathlib import Path

import numpy as np

from tusk.data.dataset import UInt8Array
from tusk.data.synthetic.canvases import PATCH, DigitBank, DigitCanvases, Split, check_split
from tusk.errors import DataError

# The names that the four files have had from the beginning; some copies have a dot for the second hyphen.
_STEMS: dict[Split, str] = {"train": "train", "test": "t10k"}
# No idx file of MNIST or its relatives comes near this; a header that claims more is damaged or hostile.
_LARGEST = 1 << 30
_UNSIGNED_BYTE = 0x08


def idx_names(split: Split) -> tuple[str, str]:
    """The usual names of a split's images and labels."""
    return f"{_STEMS[split]}-images-idx3-ubyte", f"{_STEMS[split]}-labels-idx1-ubyte"


def encode_idx(values: UInt8Array) -> bytes:
    """An array of bytes as the content of an idx file: two zeros, type, number of axes, lengths, values."""
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, _UNSIGNED_BYTE, values.ndim, *values.shape) + values.tobytes()


def read_idx(path: Path, axes: int) -> UInt8Array:
    """Reads an idx file of bytes, gzipped or not, that must have this many axes."""
    again = "fetch the file again"
    try:
        with _open(path) as file:
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


def read_mnist(source: Path, split: Split) -> tuple[UInt8Array, UInt8Array]:
    """The images (N, 28, 28) and labels (N,) of one split, from a folder with MNIST's idx files."""
    images_name, labels_name = idx_names(split)
    images_path, labels_path = _find(source, images_name), _find(source, labels_name)
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if images.shape[1:] != (PATCH, PATCH):
        size = f"{images.shape[2]}x{images.shape[1]}"
        raise DataError(str(images_path), f"holds images of {size} pixels", f"use MNIST's, of {PATCH}x{PATCH}")
    if len(images) != len(labels):
        why = f"holds {len(labels)} labels for the {len(images)} images of {images_path.name}"
        raise DataError(str(labels_path), why, "use the two files that belong together")
    return images, labels


class MnistHard(DigitCanvases):
    """`mnist-hard`: canvases of nine MNIST digits; those of a split hold digits of that split of MNIST only."""

    def __init__(self, source: Path, *, split: Split, count: int = 50_000, seed: int = 0) -> None:
        check_split(split)
        # Absolute, because a worker process may be started in another folder.
        self.source = source.absolute()
        images, labels = read_mnist(self.source, split)
        super().__init__(
            "mnist-hard", DigitBank.of(images, labels, str(self.source)), split=split, count=count, seed=seed
        )

    def __reduce__(self) -> tuple[object, tuple[Path, Split, int, int]]:
        # A worker reads the files itself: quicker than sending it 47 MB.
        return _reopen, (self.source, self.split, len(self), self.seed)


def _reopen(source: Path, split: Split, count: int, seed: int) -> MnistHard:
    return MnistHard(source, split=split, count=count, seed=seed)


def _open(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _find(source: Path, name: str) -> Path:
    dotted = name.replace("-idx", ".idx")
    for candidate in (name, dotted, f"{name}.gz", f"{dotted}.gz"):
        if (source / candidate).is_file():
            return source / candidate
    why = f"has no {name} (nor {dotted}, nor either with .gz)" if source.is_dir() else "is not a folder"
    raise DataError(str(source), why, "give a folder with MNIST's four idx files, or run 'tusk data get mnist'")
