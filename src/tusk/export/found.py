"""What was detected, as every export takes it; read from a folder that `tusk detect` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tusk.detection.detections import BoolArray
from tusk.detection.ledger import Manifest, read_manifest
from tusk.detection.records import Instance, Record
from tusk.detection.rle import mask_from, unpacked
from tusk.errors import DataError, UsageError
from tusk.export.csv import read_rows
from tusk.names import from_text


@dataclass(frozen=True)
class Found:
    """Pictures with their sizes and points, and what the types are called.

    A record has the picture's name and size; its points have x and y in the picture's pixels ((0, 0) is the centre of
    the top-left one), type, score, gain, probability, size, box and, where the model has layers, a mask.
    """

    pictures: tuple[Record, ...]
    names: tuple[str, ...]  # of every type; empty for one that was merged away or hidden
    source: str = ""  # what the pictures were read from
    model: str = "tusk"  # what found them

    @property
    def classes(self) -> tuple[str, ...]:
        """Different names, in the order of the types: types of one name are one class."""
        return tuple(dict.fromkeys(name for name in self.names if name))

    def class_number(self, one: Instance) -> int:
        """Which of the classes, counted from 0."""
        return self.classes.index(self.names[one.type])

    def name(self, one: Instance) -> str:
        return self.names[one.type]


def mask_of(picture: Record, one: Instance) -> BoolArray | None:
    """(height, width) bool; None where it has no mask."""
    return None if one.mask is None else mask_from(unpacked(one.mask), picture.height, picture.width)


def type_names(types: int, names: Mapping[int, str] | None = None) -> tuple[str, ...]:
    """A name for every type: 'type 3' where none is given."""
    given = names or {}
    foreign = [number for number in given if not 0 <= number < types]
    if foreign:
        raise UsageError("names", f"there is no type {foreign[0]}", f"types are counted from 0 to {types - 1}")
    return tuple(given.get(number, "").strip() or f"type {number}" for number in range(types))


def read_results(folder: Path, names: Mapping[int, str] | None = None) -> Found:
    """What is in a folder that `tusk detect` wrote and finished."""
    manifest = _manifest(folder)
    path = folder / "coco.json"
    try:
        coco: dict[str, Any] = json.loads(path.read_bytes())
        rows = list(read_rows(folder / "detections.csv"))
        pictures = _pictures(coco, rows)
        # With names, hidden and merged types have no category, and the others keep their numbers.
        known = {int(one["id"]) - 1: str(one["name"]) for one in coco["categories"]}
        types = 1 + max(known, default=-1)
    except FileNotFoundError as error:
        raise DataError(str(error.filename), "there is no such file", "run 'tusk detect' again") from error
    except (ValueError, KeyError, TypeError, LookupError, AttributeError, RecursionError) as error:
        why = f"it is not as 'tusk detect' wrote it ({type(error).__name__})"
        raise DataError(str(path), why, "run 'tusk detect' again") from error
    called = type_names(types, {**known, **(names or {})})
    living = tuple(name if number in known else "" for number, name in enumerate(called))
    return Found(pictures, living, manifest.source, f"tusk {manifest.version} {manifest.model[:12]}")


def _manifest(folder: Path) -> Manifest:
    if not folder.is_dir():
        raise DataError(str(folder), "there is no such folder", "name one that 'tusk detect' wrote")
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(str(folder), "it holds no results", "name a folder that 'tusk detect' wrote")
    if manifest.totals is None:
        raise DataError(str(folder), "the detection is not finished", "run it to its end with --resume")
    return manifest


def _pictures(coco: Mapping[str, Any], rows: list[dict[str, Any]]) -> tuple[Record, ...]:
    """Annotations and rows of the table are in one order: the table also has instances and sizes."""
    if len(rows) != len(coco["annotations"]):
        raise ValueError("detections.csv and coco.json are of different results")
    known = {int(one["id"]) - 1 for one in coco["categories"]}
    found: dict[int, list[Instance]] = {int(image["id"]): [] for image in coco["images"]}
    for one, row in zip(coco["annotations"], rows, strict=True):
        left, top, width, height = map(float, one["bbox"])
        segmentation = one.get("segmentation")
        instance = Instance(
            instance=int(row["instance"]),
            type=int(one["category_id"]) - 1,
            x=float(row["x"]),
            y=float(row["y"]),
            score=float(row["score"]),
            gain=float(row["gain"]),
            probability=float(row["probability"]),
            size=float(row["size"]),
            box=(left, top, width, height),
            area=float(one["area"]),
            mask=None if segmentation is None else str(segmentation["counts"]),
        )
        if instance.type != row["type"] or instance.type not in known:
            raise ValueError("detections.csv and coco.json are of different results")
        found[one["image_id"]].append(instance)
    return tuple(
        Record(from_text(image["file_name"]), int(image["width"]), int(image["height"]), tuple(found[int(image["id"])]))
        for image in coco["images"]
    )
