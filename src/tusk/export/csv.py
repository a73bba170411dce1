"""Detections as tables: detections.csv, a row for each; counts.csv, a row for each picture; unreadable.csv and
unwritten.csv.

How names of files are written is in `names.py`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from tusk.detection.detections import COLUMNS
from tusk.detection.labels import TypeLabels
from tusk.detection.limits import Limits
from tusk.detection.records import Record, Totals
from tusk.io import atomic_file
from tusk.names import csv_line as _line
from tusk.names import from_cell


def write_tables(folder: Path, records: Iterable[Record], types: int, labels: TypeLabels | None = None) -> Totals:
    """All tables; each is there as a whole or not at all.

    With labels, detections.csv has a last column with the name of each type, and counts.csv a column for each of them.

    A picture without detections has a row of zeros in counts.csv; one that could not be read is in unreadable.csv
    alone, for nobody has counted there.
    """
    pictures = unreadable = empty = 0
    of_types, limits = [0] * types, Limits()
    with (
        atomic_file(folder / "detections.csv") as table,
        atomic_file(folder / "counts.csv") as counts,
        atomic_file(folder / "unreadable.csv") as refused,
    ):
        columns = {number: f"type_{number}" for number in range(types)} if labels is None else labels.columns
        table.write(_line(COLUMNS if labels is None else (*COLUMNS, "name")))
        counts.write(_line(("image", "total", *columns.values())))
        refused.write(_line(("image", "why")))
        for record in records:
            if record.why is not None:
                unreadable += 1
                refused.write(_line((record.image, record.why)))
                continue
            pictures += 1
            empty += not record.found
            limits += record.limits
            numbers = record.counts(types)
            of_types = [sum(both) for both in zip(of_types, numbers, strict=True)]
            of_columns = (numbers[number] for number in columns)
            counts.write(_line((record.image, *map(str, (len(record.found), *of_columns)))))
            for one in record.found:
                places = (f"{value:.2f}" for value in (one.x, one.y))
                values = (f"{value:.4f}" for value in (one.score, one.gain, one.probability))
                cells = (record.image, str(one.instance), str(one.type), *places, *values, f"{one.size:.2f}")
                table.write(_line(cells if labels is None else (*cells, labels.titles[one.type])))
    return Totals(pictures, unreadable, sum(of_types), tuple(of_types), empty, limits)


def write_unwritten(folder: Path, records: Iterable[Record]) -> int:
    """unwritten.csv, where there are masks or overlays that could not be written; -> of how many pictures."""
    rows = ((record.image, record.unwritten) for record in records if record.unwritten is not None)
    first = next(rows, None)
    if first is None:
        return 0
    count = 0
    with atomic_file(folder / "unwritten.csv") as table:
        table.write(_line(("image", "why")))
        for row in chain([first], rows):
            table.write(_line(row))
            count += 1
    return count


def read_rows(path: Path) -> Iterator[dict[str, str | int | float]]:
    """The rows of a detections.csv, with numbers as numbers and names as they are on the disk."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = {name: float(row[name]) for name in COLUMNS[3:]}
            image = from_cell(row["image"])
            named = {"name": from_cell(row["name"])} if "name" in row else {}
            yield {"image": image, "instance": int(row["instance"]), "type": int(row["type"]), **numbers, **named}


def read_counts(path: Path) -> Iterator[dict[str, str | int]]:
    """The rows of a counts.csv, with numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {name: from_cell(value) if name == "image" else int(value) for name, value in row.items()}
