"""idx files, MNIST's format: read as written, and every fault named."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.data.formats.idx import encode_idx, read_idx
from tusk.errors import DataError


def idx_bytes(values: np.ndarray) -> bytes:
    """An idx file by its description: magic number, lengths as big-endian words, then the bytes."""
    lengths = b"".join(struct.pack(">I", length) for length in values.shape)
    return bytes([0, 0, 8, values.ndim]) + lengths + values.tobytes()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=4).flatmap(
        lambda shape: st.binary(min_size=int(np.prod(shape)), max_size=int(np.prod(shape))).map(
            lambda content: np.frombuffer(content, dtype=np.uint8).reshape(shape)
        )
    )
)
def test_idx_files_come_back_as_written(tmp_path_factory: pytest.TempPathFactory, values: np.ndarray) -> None:
    assert encode_idx(values) == idx_bytes(values)
    path = tmp_path_factory.mktemp("idx") / "values"
    path.write_bytes(encode_idx(values))
    np.testing.assert_array_equal(read_idx(path, values.ndim), values)


LABELS = idx_bytes(np.arange(10, dtype=np.uint8))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("short", LABELS[:5], "ends after 5 bytes, inside its header"),
        ("empty", b"", "ends after 0 bytes"),
        ("images", idx_bytes(np.zeros((1, 2, 2), dtype=np.uint8)), "magic number 2051, not 2049"),
        ("words", b"\0\0\x0c\x01" + LABELS[4:], "magic number 3073, not 2049"),
        ("cut", LABELS[:-1], "should hold 10 bytes after its header and holds 9"),
        ("tail", LABELS + b"\0", "should hold 10 bytes after its header and holds more"),
        ("huge", b"\0\0\x08\x01\xff\xff\xff\xff" + LABELS[8:], "claims 4294967295 bytes"),
        ("cut.gz", gzip.compress(LABELS, mtime=0)[:-9], "cannot be read"),
        ("plain.gz", LABELS, "cannot be read"),
        ("flipped.gz", gzip.compress(LABELS, mtime=0)[:-8] + b"\0\0\0\0\0\0\0\0", "cannot be read"),
    ],
)
def test_every_fault_of_an_idx_file_is_named(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_idx(path, 1)
    assert str(path) in str(caught.value) and reason in str(caught.value)


@settings(max_examples=120, deadline=None)
@given(zipped=st.booleans(), data=st.data())
def test_a_damaged_file_is_an_error_of_ours_or_still_an_array(
    tmp_path_factory: pytest.TempPathFactory, zipped: bool, data: st.DataObject
) -> None:
    content = bytearray(gzip.compress(LABELS, mtime=0) if zipped else LABELS)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / ("labels.gz" if zipped else "labels")
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        assert read_idx(path, 1).ndim == 1
    except DataError as error:
        assert str(path) in str(error)
