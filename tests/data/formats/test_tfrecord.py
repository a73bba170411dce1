"""TFRecord framing and the Example parser: what was written is read back, and damage is named, never passed on."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.formats import tfrecord_writer as writer
from tusk.data.formats import tfrecord
from tusk.data.formats.tf_example import parse_example
from tusk.data.formats.tfrecord import masked_crc32c, read_records
from tusk.errors import DataError, UsageError

RECORDS = [b"first", b"", b"the third record"]


@pytest.mark.parametrize("compress", [False, True])
@settings(max_examples=40, deadline=None)
@given(records=st.lists(st.binary(max_size=300), max_size=6))
def test_records_round_trip(tmp_path_factory: pytest.TempPathFactory, compress: bool, records: list[bytes]) -> None:
    path = writer.write_records(tmp_path_factory.mktemp("round") / "some.tfrecords", records, compress)
    found = list(read_records(path))
    assert [record.data for record in found] == records
    assert [record.number for record in found] == list(range(len(records)))


def test_checksum_is_crc32c_masked() -> None:
    # 0xE3069283 is the published check value of CRC32C for these nine digits.
    rotated = (0xE3069283 >> 15) | (0xE3069283 << 17) & 0xFFFFFFFF
    assert masked_crc32c()(b"123456789") == (rotated + 0xA282EAD8) % 2**32


def test_a_plain_file_that_begins_like_gzip(tmp_path: Path) -> None:
    record = bytes(0x8B1F)  # this length's first two bytes are those of gzip
    path = writer.write_records(tmp_path / "a.tfrecords", [record, b"more"])
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert [found.data for found in read_records(path)] == [record, b"more"]


def test_several_gzip_members_are_one_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecords"
    path.write_bytes(b"".join(gzip.compress(writer.frame(record)) for record in RECORDS))
    assert [found.data for found in read_records(path)] == RECORDS


@pytest.mark.parametrize(
    ("record", "offset", "wrong"), [(1, 0, "length"), (1, 8, "length"), (2, 12, "data"), (2, 28, "data")]
)
@pytest.mark.parametrize("compress", [False, True])
def test_damage_is_named(tmp_path: Path, record: int, offset: int, wrong: str, compress: bool) -> None:
    frames = [writer.frame(data) for data in RECORDS]
    place = sum(map(len, frames[:record]))
    stream = bytearray(b"".join(frames))
    stream[place + offset] ^= 1
    path = tmp_path / "bad.tfrecords"
    path.write_bytes(gzip.compress(stream, mtime=0) if compress else stream)
    found: list[bytes] = []
    with pytest.raises(DataError) as caught:
        found.extend(read.data for read in read_records(path))
    # What came before the damage is read.
    assert found == RECORDS[:record]
    message = str(caught.value)
    assert all(word in message for word in (str(path), f"record {record}", f"byte {place}", f"record's {wrong}", "CRC"))
    assert "fetch it again" in message


@pytest.mark.parametrize("compress", [False, True])
def test_every_single_flipped_bit_is_found_or_harmless(tmp_path: Path, compress: bool) -> None:
    stream = b"".join(map(writer.frame, RECORDS))
    whole = gzip.compress(stream, mtime=0) if compress else stream
    path = tmp_path / "flipped.tfrecords"
    errors = 0
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        try:
            # gzip's header has bytes that mean nothing, such as the time.
            assert [record.data for record in read_records(path)] == RECORDS
        except DataError:
            errors += 1
    assert errors == len(whole) if not compress else errors > len(whole) - 10


@pytest.mark.parametrize("compress", [False, True])
def test_every_truncation_is_found(tmp_path: Path, compress: bool) -> None:
    frames = [writer.frame(data) for data in RECORDS]
    whole = gzip.compress(b"".join(frames)) if compress else b"".join(frames)
    # A plain file cut between two records is a shorter file, whole in itself.
    boundaries = {0} if compress else {sum(map(len, frames[:count])) for count in range(len(frames))}
    path = tmp_path / "short.tfrecords"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        if length in boundaries:
            assert len(list(read_records(path))) < len(RECORDS)
            continue
        with pytest.raises(DataError, match=r"truncated.*whole"):
            list(read_records(path))


def test_records_come_one_by_one(tmp_path: Path) -> None:
    path = writer.write_records(tmp_path / "a.tfrecords", RECORDS)
    path.write_bytes(path.read_bytes()[:-1])
    records = read_records(path)
    assert [next(records).data, next(records).data] == RECORDS[:2]
    with pytest.raises(DataError, match="record 2 at byte 37"):
        next(records)


def test_what_is_no_tfrecord(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "a.txt"
    text.write_text("certainly not a TFRecord file")
    with pytest.raises(DataError, match="check that it is a TFRecord file"):
        list(read_records(text))
    with pytest.raises(DataError, match="does not exist"):
        list(read_records(tmp_path / "none"))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_records(tmp_path))
    length = struct.pack("<Q", 2**40)
    text.write_bytes(length + struct.pack("<I", writer.masked_crc(length)) + b"abc")
    with pytest.raises(DataError, match="the limit is"):
        list(read_records(text))
    monkeypatch.setattr(tfrecord, "MAX_RECORD_BYTES", 5)
    assert len(list(read_records(writer.write_records(text, [b"12345"])))) == 1
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    with pytest.raises(UsageError, match=r"tusk-keypoints\[data\]"):
        list(read_records(text))


FLOATS = st.lists(st.floats(width=32, allow_nan=False), max_size=8)
INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8)


@given(
    pixels=st.binary(max_size=40),
    texts=st.lists(st.binary(max_size=5)),
    reals=FLOATS,
    whole=INTEGERS,
    packed=st.booleans(),
)
def test_examples_round_trip(
    pixels: bytes, texts: list[bytes], reals: list[float], whole: list[int], packed: bool
) -> None:
    data = writer.example(
        pixels=writer.one_byte_each(np.frombuffer(pixels, np.uint8)),
        texts=writer.strings(texts),
        reals=writer.floats(reals, packed),
        whole=writer.integers(whole, packed),
    )
    found = parse_example(data, "here")
    assert set(found.names) == {"pixels", "texts", "reals", "whole"}
    assert found.one_byte_each("pixels", (len(pixels), 1)).tobytes() == pixels
    assert found.strings("texts") == tuple(texts)
    # The fast way and the general one agree on what they both can read.
    assert b"".join(found.strings("pixels")) == pixels
    assert found.floats("reals", (len(reals),)).tolist() == reals
    assert found.integers("whole", (len(whole),)).tolist() == whole


def test_floats_packed_and_single_may_mix() -> None:
    mixed = writer.floats([1, 2])[2:] + writer.floats([3], packed=False)[2:] + writer.floats([4])[2:]
    found = parse_example(writer.example(x=writer.field(2, mixed)), "here")
    assert found.floats("x", (2, 2)).tolist() == [[1, 2], [3, 4]]


def test_unknown_fields_are_passed_over() -> None:
    unknown = writer.varint(9 << 3) + b"\x05" + writer.varint(10 << 3 | 1) + bytes(8) + writer.field(11, b"anything")
    data = unknown + writer.example(other=writer.floats([1]), x=writer.one_byte_each([7, 8])) + unknown
    assert parse_example(data, "here").one_byte_each("x", (2,)).tolist() == [7, 8]
    with_inner = writer.example(x=writer.field(1, writer.one_byte_each([7, 8])[2:] + unknown))
    assert parse_example(with_inner, "here").one_byte_each("x", (2,)).tolist() == [7, 8]


def test_the_last_of_two_equal_names_counts() -> None:
    data = writer.example(x=writer.floats([1])) + writer.example(x=writer.floats([2]))
    assert parse_example(data, "here").floats("x", ()).tolist() == 2


def test_a_feature_that_is_not_as_expected() -> None:
    found = parse_example(
        writer.example(x=writer.floats([1, 2]), image=writer.one_byte_each([1, 2, 3]), text=writer.strings([b"ab"])),
        "file.tfrecords, record 5",
    )
    with pytest.raises(DataError, match=r"file\.tfrecords, record 5: there is no feature 'mask', only image, text, x"):
        found.one_byte_each("mask", (1,))
    with pytest.raises(DataError, match="feature 'x' holds float values where bytes values belong"):
        found.one_byte_each("x", (2,))
    with pytest.raises(DataError, match="feature 'image' has 3 values where 2 x 2 = 4 belong"):
        found.one_byte_each("image", (2, 2))
    with pytest.raises(DataError, match="feature 'x' has 2 values where 3 = 3 belong"):
        found.floats("x", (3,))
    with pytest.raises(DataError, match="not of one byte each"):
        found.one_byte_each("text", (2,))


def test_lists_that_only_look_as_expected() -> None:
    # In every third byte of this one string stands the mark of a new string.
    disguised = writer.strings([b"x\nyz"])
    with pytest.raises(DataError, match="not of one byte each"):
        parse_example(writer.example(a=disguised), "here").one_byte_each("a", (2,))
    for payload in (bytes(5), b"", bytes(8)):
        feature = parse_example(writer.example(a=writer.field(2, writer.field(1, payload))), "here")
        with pytest.raises(DataError, match="feature 'a'"):
            feature.floats("a", (1,))


def read_everything(data: bytes) -> None:
    found = parse_example(data, "here")
    for name in found.names:
        for read in (found.one_byte_each, found.floats, found.integers, lambda name, _: found.strings(name)):
            try:
                read(name, (3,))
            except DataError as error:
                assert error.what == "here"


VALID = writer.example(
    a=writer.one_byte_each([1, 2, 3]), b=writer.floats([1, 2, 3]), c=writer.integers([1, -1, 300], packed=False)
)


@settings(max_examples=300)
@given(data=st.binary(max_size=60))
def test_garbage_is_a_data_error_or_nothing(data: bytes) -> None:
    try:
        read_everything(data)
    except DataError as error:
        assert error.what == "here"


@settings(max_examples=400)
@given(changes=st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_example_is_a_data_error_or_another_example(changes: list[tuple[int, int]]) -> None:
    data = bytearray(VALID)
    for place, value in changes:
        data[place] = value
    try:
        read_everything(bytes(data))
    except DataError as error:
        assert error.what == "here"


def test_every_cut_of_an_example_is_found() -> None:
    # The whole is one field, so that each cut must break its length.
    for length in range(1, len(VALID)):
        with pytest.raises(DataError):
            parse_example(VALID[:length], "here")
