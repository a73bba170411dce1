"""What is kept of a picture in a part of a run: numbers as they are written in the end, one line of JSON for each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tusk.detection.detections import Detection, Detections
from tusk.export.rle import packed, run_lengths


@dataclass(frozen=True)
class Instance:
    """One found thing; places to 2 decimals, the rest to 4."""

    instance: int
    type: int
    x: float
    y: float
    score: float
    gain: float
    probability: float
    box: tuple[float, float, float, float]  # left, top, width, height, from the picture's top-left corner
    area: float
    mask: str | None  # packed run lengths


@dataclass(frozen=True)
class Record:
    """One picture: what was found, or why it could not be read."""

    image: str
    width: int = 0
    height: int = 0
    found: tuple[Instance, ...] = ()
    why: str | None = None

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def from_line(line: bytes) -> Record:
        values: dict[str, Any] = json.loads(line)
        found = (Instance(**{**one, "box": tuple(one["box"])}) for one in values.pop("found"))
        return Record(**values, found=tuple(found))


@dataclass(frozen=True)
class Totals:
    """What a run found."""

    pictures: int
    unreadable: int
    instances: int


def record_of(detections: Detections, side: float) -> Record:
    """`side` is how many of the picture's pixels a thing without a mask is taken to be wide and high."""
    found = tuple(_instance(one, detections, side) for one in detections)
    return Record(detections.source, detections.width, detections.height, found)


def _instance(one: Detection, picture: Detections, side: float) -> Instance:
    box, mask = _box_around(one, picture, side), None
    area = box[2] * box[3]
    if one.mask is not None and one.mask.any():  # a thing may be wholly covered by others
        rows, columns = np.flatnonzero(one.mask.any(1)), np.flatnonzero(one.mask.any(0))
        left, top = int(columns[0]), int(rows[0])
        box = (left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top)
        area, mask = float(one.mask.sum()), packed(run_lengths(one.mask))
    return Instance(
        instance=one.instance,
        type=one.type,
        x=_rounded(one.x, 2),
        y=_rounded(one.y, 2),
        score=_rounded(one.score, 4),
        gain=_rounded(one.gain, 4),
        probability=_rounded(one.probability, 4),
        box=box,
        area=_rounded(area, 2),
        mask=mask,
    )


def _box_around(one: Detection, picture: Detections, side: float) -> tuple[float, float, float, float]:
    """A square around the point, as far as it lies in the picture. Edges are half a pixel off the pixels' centres."""
    left, top = max(0.0, one.x + 0.5 - side / 2), max(0.0, one.y + 0.5 - side / 2)
    right, bottom = min(picture.width, one.x + 0.5 + side / 2), min(picture.height, one.y + 0.5 + side / 2)
    # Rounded downwards, so that the box does not reach beyond the picture again.
    left, top = (np.floor(edge * 100) / 100 for edge in (left, top))
    return left, top, float(np.floor((right - left) * 100) / 100), float(np.floor((bottom - top) * 100) / 100)


def _rounded(value: float, places: int) -> float:
    return round(value, places) + 0.0  # never -0.0
