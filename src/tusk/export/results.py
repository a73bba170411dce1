"""From the parts of a run to the files that people want: detections.csv, coco.json, unreadable.csv.

Records are read anew for each file and one at a time, so that a million pictures need no more memory than one.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tusk.detection.detections import COLUMNS
from tusk.detection.records import Instance, Record
from tusk.io import atomic_file

Records = Callable[[], Iterable[Record]]


@dataclass(frozen=True)
class Totals:
    """What a run found."""

    pictures: int
    unreadable: int
    instances: int


def write_results(folder: Path, records: Records, types: int) -> Totals:
    """All three files; each is there as a whole or not at all."""
    pictures = unreadable = instances = 0
    with atomic_file(folder / "detections.csv") as table, atomic_file(folder / "unreadable.csv") as refused:
        table.write(_csv_line(COLUMNS))
        refused.write(_csv_line(("image", "why")))
        for record in records():
            if record.why is not None:
                unreadable += 1
                refused.write(_csv_line((record.image, record.why)))
                continue
            pictures += 1
            instances += len(record.found)
            for one in record.found:
                table.write(_csv_line(_cells(record.image, one)))
    with atomic_file(folder / "coco.json") as file:
        _write_coco(file, records, types)
    return Totals(pictures, unreadable, instances)


def read_rows(path: Path) -> Iterator[dict[str, str | int | float]]:
    """The rows of a detections.csv, with numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = {name: float(row[name]) for name in COLUMNS[3:]}
            yield {"image": row["image"], "instance": int(row["instance"]), "type": int(row["type"]), **numbers}


def _cells(image: str, one: Instance) -> tuple[str, ...]:
    places = (f"{one.x:.2f}", f"{one.y:.2f}")
    return (
        image,
        str(one.instance),
        str(one.type),
        *places,
        *(f"{value:.4f}" for value in (one.score, one.gain, one.probability)),
    )


def _csv_line(cells: Iterable[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(cells)
    # A file name need not be valid Unicode.
    return text.getvalue().encode("utf-8", "backslashreplace")


def _write_coco(file: BinaryIO, records: Records, types: int) -> None:
    """Types are categories of one keypoint each; numbers count from 1, as is usual there."""
    file.write(b'{"images": [')
    _write_items(file, _coco_images(records))
    file.write(b'],\n"annotations": [')
    _write_items(file, _coco_annotations(records))
    file.write(b'],\n"categories": [')
    _write_items(file, map(_coco_category, range(types)))
    file.write(b"]}\n")


def _write_items(file: BinaryIO, items: Iterable[dict[str, Any]]) -> None:
    for place, item in enumerate(items):
        file.write((b",\n" if place else b"\n") + json.dumps(item).encode())


def _coco_images(records: Records) -> Iterator[dict[str, Any]]:
    for number, record in enumerate(_read(records), 1):
        yield {"id": number, "file_name": record.image, "width": record.width, "height": record.height}


def _coco_annotations(records: Records) -> Iterator[dict[str, Any]]:
    identity = 0
    for number, record in enumerate(_read(records), 1):
        for one in record.found:
            identity += 1
            annotation: dict[str, Any] = {
                "id": identity,
                "image_id": number,
                "category_id": one.type + 1,
                "keypoints": [one.x, one.y, 2],  # 2: labelled and visible
                "num_keypoints": 1,
                "bbox": list(one.box),
                "area": one.area,
                "iscrowd": 0,
                "score": one.score,
                "gain": one.gain,
                "probability": one.probability,
            }
            if one.mask is not None:
                annotation["segmentation"] = {"size": [record.height, record.width], "counts": one.mask}
            yield annotation


def _coco_category(number: int) -> dict[str, Any]:
    return {
        "id": number + 1,
        "name": f"type {number}",
        "supercategory": "type",
        "keypoints": ["point"],
        "skeleton": [],
    }


def _read(records: Records) -> Iterator[Record]:
    return (record for record in records() if record.why is None)
