"""Detections as one COCO file, written as a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tusk.detection.coco import coco_annotation, coco_category, coco_image
from tusk.detection.labels import TypeLabels
from tusk.detection.records import Record
from tusk.io import atomic_file

Records = Callable[[], Iterable[Record]]


def write_coco(path: Path, records: Records, types: int, labels: TypeLabels | None = None) -> None:
    """The whole file or nothing; `records` are read anew for images and for annotations."""
    with atomic_file(path) as file:
        file.write(b'{"images": [')
        _write_items(file, (coco_image(record, number) for number, record in _numbered(records)))
        file.write(b'],\n"annotations": [')
        _write_items(file, _annotations(records))
        file.write(b'],\n"categories": [')
        titles = dict.fromkeys(range(types)) if labels is None else labels.titles
        _write_items(file, (coco_category(number, title) for number, title in titles.items()))
        file.write(b"]}\n")


def _write_items(file: BinaryIO, items: Iterable[dict[str, Any]]) -> None:
    for place, item in enumerate(items):
        file.write((b",\n" if place else b"\n") + json.dumps(item).encode())


def _annotations(records: Records) -> Iterator[dict[str, Any]]:
    identity = 0
    for number, record in _numbered(records):
        for one in record.found:
            identity += 1
            yield coco_annotation(record, one, number, identity)


def _numbered(records: Records) -> Iterator[tuple[int, Record]]:
    """Pictures that could be read, counted from 1."""
    return enumerate((record for record in records() if record.why is None), 1)
