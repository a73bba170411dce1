"""The text files that come with CelebA and MAFL; a fault in them is named with its line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tusk.data.dataset import Int64Array
from tusk.errors import DataError

_CORRECT = "correct that line, or take the file from the official release"


def _lines(path: Path) -> list[str]:
    """The lines, without the blank ones at the end."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise DataError(str(path), "does not exist", "add it from the official release") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), "cannot be read as text", "replace it with an intact copy") from error
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _file_name(path: Path, number: int, name: str) -> str:
    """Only a plain name: nothing in a list may lead out of the folder of images."""
    if "/" in name or "\\" in name or name in ("", ".", ".."):
        raise DataError(str(path), f"line {number} has '{name}' where a file name should be", _CORRECT)
    return name


def _number(path: Path, line: int, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise DataError(str(path), f"line {line} has '{text}' where a whole number should be", _CORRECT) from error


def read_table(path: Path, columns: tuple[str, ...]) -> tuple[list[str], Int64Array]:
    """The files, and (N, len(columns)) what the table says of each: a count, the names of the columns, the rows."""
    lines = _lines(path)
    if len(lines) < 2:
        raise DataError(str(path), "is empty or cut short", "replace it with an intact copy")
    count = _number(path, 1, lines[0].strip())
    header = lines[1].split()
    if tuple(header[-len(columns) :]) != columns:
        raise DataError(str(path), f"line 2 does not end in the columns {' '.join(columns)}", _CORRECT)
    rows = lines[2:]
    if count != len(rows):
        why = f"line 1 promises {count} images, but {len(rows)} follow"
        raise DataError(str(path), why, "replace it with an intact copy")
    names: list[str] = []
    values = np.empty((len(rows), len(columns)), np.int64)
    for i, row in enumerate(rows):
        fields = row.split()
        if len(fields) != len(columns) + 1:
            why = f"line {i + 3} has {len(fields)} fields instead of {len(columns) + 1}"
            raise DataError(str(path), why, _CORRECT)
        names.append(_file_name(path, i + 3, fields[0]))
        try:
            values[i] = [int(field) for field in fields[1:]]
        except (ValueError, OverflowError) as error:
            raise DataError(str(path), f"line {i + 3} has a value that is not a whole number", _CORRECT) from error
    _refuse_twice(path, names, 3)
    return names, values


def _refuse_twice(path: Path, names: list[str], first_line: int) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            raise DataError(str(path), f"line {i + first_line} names {name} a second time", _CORRECT)
        seen.add(name)


def read_names(path: Path, known: Mapping[str, int]) -> list[str]:
    """MAFL's lists: one file a line, each one of CelebA's."""
    names = [_file_name(path, i + 1, line.strip()) for i, line in enumerate(_lines(path))]
    if not names:
        raise DataError(str(path), "is empty", "replace it with an intact copy")
    for i, name in enumerate(names):
        if name not in known:
            why = f"line {i + 1} names {name}, which CelebA's landmarks do not list"
            raise DataError(str(path), why, "check that the list belongs to this copy of CelebA")
    _refuse_twice(path, names, 1)
    return names


def read_partition(path: Path, known: Mapping[str, int]) -> Int64Array:
    """(N,) for every known file 0 (train), 1 (valid) or 2 (test)."""
    parts = np.full(len(known), -1, np.int64)
    for i, line in enumerate(_lines(path)):
        fields = line.split()
        if len(fields) != 2 or fields[1] not in ("0", "1", "2"):
            raise DataError(str(path), f"line {i + 1} is not a file and 0, 1 or 2", _CORRECT)
        if fields[0] not in known:
            why = f"line {i + 1} names {fields[0]}, which CelebA's landmarks do not list"
            raise DataError(str(path), why, "check that the list belongs to this copy of CelebA")
        parts[known[fields[0]]] = int(fields[1])
    if (parts < 0).any():
        missing = next(name for name, i in known.items() if parts[i] < 0)
        raise DataError(str(path), f"does not say to which part {missing} belongs", "replace it with an intact copy")
    return parts
