"""Reads `tf.train.Example` messages without TensorFlow or protobuf.

An Example is a map from names to lists of bytes strings, floats or integers. Only the outline is read at first;
a list is decoded when it is asked for, so features that nobody wants cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Float32Array, Int64Array, UInt8Array
from tusk.errors import DataError

Number = TypeVar("Number", bound=np.generic)

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


class Kind(IntEnum):
    """What a feature's list holds: the field numbers of tf.train.Feature."""

    BYTES = 1
    FLOAT = 2
    INT64 = 3


@dataclass(frozen=True)
class _Feature:
    kind: Kind
    payload: memoryview  # the encoded list


class Example:
    """One parsed Example. Every method raises DataError, naming the record, where the feature is not as asked for."""

    def __init__(self, features: dict[str, _Feature], where: str) -> None:
        self._features = features
        self._where = where

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._features)

    def one_byte_each(self, name: str, shape: tuple[int, ...]) -> UInt8Array:
        """An array stored as a list of strings of ONE byte each, as the multi-object datasets do."""
        payload = self._payload(name, Kind.BYTES)
        flat = _one_byte_strings(payload)
        if flat is None:
            strings = self.strings(name)
            if any(len(string) != 1 for string in strings):
                raise self._error(f"feature '{name}' holds strings that are not of one byte each")
            flat = np.frombuffer(b"".join(strings), np.uint8)
        return self._shaped(name, flat, shape)

    def strings(self, name: str) -> tuple[bytes, ...]:
        found = []
        for field, wire, value in self._fields(name, Kind.BYTES):
            if field == 1:
                if wire != _BYTES or isinstance(value, int):
                    raise self._error(f"feature '{name}' is not a list of strings")
                found.append(bytes(value))
        return tuple(found)

    def floats(self, name: str, shape: tuple[int, ...]) -> Float32Array:
        parts = []
        for field, wire, value in self._fields(name, Kind.FLOAT):
            if field == 1:
                # A list is written packed (one string of all numbers) or one by one; both are allowed and may mix.
                if wire not in (_BYTES, _FIXED32) or isinstance(value, int) or len(value) % 4:
                    raise self._error(f"feature '{name}' is not a list of floats")
                parts.append(value)
        return self._shaped(name, np.frombuffer(b"".join(parts), "<f4").astype(np.float32), shape)

    def integers(self, name: str, shape: tuple[int, ...]) -> Int64Array:
        numbers: list[int] = []
        for field, wire, value in self._fields(name, Kind.INT64):
            if field == 1:
                if isinstance(value, int):
                    numbers.append(value)
                elif wire == _BYTES:
                    numbers.extend(self._varints(value))
                else:
                    raise self._error(f"feature '{name}' is not a list of integers")
        return self._shaped(name, np.array(numbers, np.uint64).view(np.int64), shape)

    def _varints(self, data: memoryview) -> Iterator[int]:
        place = 0
        while place < len(data):
            value, place = _varint(data, place, self._where)
            yield value

    def _fields(self, name: str, kind: Kind) -> Iterator[tuple[int, int, memoryview | int]]:
        return _fields(self._payload(name, kind), self._where)

    def _payload(self, name: str, kind: Kind) -> memoryview:
        feature = self._features.get(name)
        if feature is None:
            raise self._error(f"there is no feature '{name}', only {', '.join(sorted(self._features)) or 'none'}")
        if feature.kind is not kind:
            found, wanted = feature.kind.name.lower(), kind.name.lower()
            raise self._error(f"feature '{name}' holds {found} values where {wanted} values belong")
        return feature.payload

    def _shaped(self, name: str, flat: npt.NDArray[Number], shape: tuple[int, ...]) -> npt.NDArray[Number]:
        if flat.size != math.prod(shape):
            wanted = " x ".join(map(str, shape))
            raise self._error(f"feature '{name}' has {flat.size:,} values where {wanted} = {math.prod(shape):,} belong")
        return flat.reshape(shape)

    def _error(self, why: str) -> DataError:
        return _error(self._where, why)


def parse_example(data: bytes, where: str) -> Example:
    """The features of one record; `where` names it in every error. Where a name comes twice, the last counts."""
    features: dict[str, _Feature] = {}
    for entry in _messages(memoryview(data), 1, where):  # Example.features
        for pair in _messages(entry, 1, where):  # Features.feature, a map: pairs of key and value
            name, feature = _pair(pair, where)
            if feature is not None:
                features[name] = feature
    return Example(features, where)


def _pair(pair: memoryview, where: str) -> tuple[str, _Feature | None]:
    keys = list(_messages(pair, 1, where))
    try:
        name = bytes(keys[-1]).decode() if keys else ""
    except UnicodeDecodeError as error:
        raise _error(where, "a feature's name is not UTF-8") from error
    kinds: list[tuple[Kind, memoryview]] = []
    for value in _messages(pair, 2, where):
        for kind in Kind:
            kinds.extend((kind, payload) for payload in _messages(value, int(kind), where))
    if not kinds:
        return name, None
    if len(kinds) > 1:
        # The format allows to merge them; no writer makes such, and guessing which list is meant would be worse.
        raise _error(where, f"feature '{name}' holds {len(kinds)} lists")
    return name, _Feature(*kinds[0])


def _one_byte_strings(payload: memoryview) -> UInt8Array | None:
    """All values of a list of one-byte strings at once, or None if the list is not only of those.

    Each is encoded as three bytes: field 1 as string (0x0a), length 1, the value.
    """
    if len(payload) % 3:
        return None
    triples = np.frombuffer(payload, np.uint8).reshape(-1, 3)
    if (triples[:, 0] == 0x0A).all() and (triples[:, 1] == 1).all():
        return np.ascontiguousarray(triples[:, 2])
    return None


def _messages(data: memoryview, number: int, where: str) -> Iterator[memoryview]:
    """The contents of every field `number`, which must be strings or messages; other fields are passed over."""
    for field, _, value in _fields(data, where):
        if field == number:
            if isinstance(value, int):
                raise _error(where, f"field {number} is a number where a message belongs")
            yield value


def _fields(data: memoryview, where: str) -> Iterator[tuple[int, int, memoryview | int]]:
    """(field number, wire type, value) of every field of a message: a varint as int, anything else as its bytes."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place, where)
        field, wire = tag >> 3, tag & 7
        if field == 0:
            raise _error(where, "a field has the number 0")
        if wire == _VARINT:
            number, place = _varint(data, place, where)
            yield field, wire, number
            continue
        if wire == _BYTES:
            size, place = _varint(data, place, where)
        elif wire in _FIXED_SIZES:
            size = _FIXED_SIZES[wire]
        else:
            raise _error(where, f"a field has the unknown wire type {wire}")
        if size > len(data) - place:
            raise _error(where, f"a field of {size:,} bytes reaches past the end of its message")
        yield field, wire, data[place : place + size]
        place += size


def _varint(data: memoryview, place: int, where: str) -> tuple[int, int]:
    """An unsigned number of seven bits per byte, lowest first, and the place after it."""
    value = 0
    for shift in range(0, 64, 7):
        if place >= len(data):
            raise _error(where, "a number reaches past the end of its message")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place
    raise _error(where, "a number has more than ten bytes")


def _error(where: str, why: str) -> DataError:
    return DataError(where, why, "check that it is the right file: another kind of record was expected")
