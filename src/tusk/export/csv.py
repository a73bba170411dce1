"""Detections as a table: detections.csv, with a row for each, and unreadable.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from tusk.detection.detections import COLUMNS
from tusk.detection.records import Record, Totals
from tusk.io import atomic_file


def write_tables(folder: Path, records: Iterable[Record]) -> Totals:
    """Both tables; each is there as a whole or not at all."""
    pictures = unreadable = instances = 0
    with atomic_file(folder / "detections.csv") as table, atomic_file(folder / "unreadable.csv") as refused:
        table.write(_line(COLUMNS))
        refused.write(_line(("image", "why")))
        for record in records:
            if record.why is not None:
                unreadable += 1
                refused.write(_line((record.image, record.why)))
                continue
            pictures += 1
            instances += len(record.found)
            for one in record.found:
                places = (f"{value:.2f}" for value in (one.x, one.y))
                values = (f"{value:.4f}" for value in (one.score, one.gain, one.probability))
                table.write(_line((record.image, str(one.instance), str(one.type), *places, *values)))
    return Totals(pictures, unreadable, instances)


def read_rows(path: Path) -> Iterator[dict[str, str | int | float]]:
    """The rows of a detections.csv, with numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = {name: float(row[name]) for name in COLUMNS[3:]}
            yield {"image": row["image"], "instance": int(row["instance"]), "type": int(row["type"]), **numbers}


def _line(cells: Iterable[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(cells)
    # A file name need not be valid Unicode.
    return text.getvalue().encode("utf-8", "backslashreplace")
