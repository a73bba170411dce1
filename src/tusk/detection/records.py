"""What is stored of each picture in a run: numbers as they are written in the end, one line of JSON for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tusk.detection.detections import Detection, Detections
from tusk.detection.limits import Limits, limits_of
from tusk.detection.rle import packed, run_lengths

PICTURES = ("masks", "overlays")  # the folders of the pictures that are made of each picture


@dataclass(frozen=True)
class Instance:
    """One detection; places to 2 decimals, the rest to 4."""

    instance: int
    type: int
    x: float
    y: float
    score: float
    gain: float
    probability: float
    size: float
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
    limits: Limits = field(default_factory=Limits)
    unwritten: str | None = None  # why its mask or overlay could not be written

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def from_line(line: bytes) -> Record:
        values: dict[str, Any] = json.loads(line)
        found = (Instance(**{**one, "box": tuple(one["box"])}) for one in values.pop("found"))
        limits = Limits.from_json(values.pop("limits"))
        return Record(**values, found=tuple(found), limits=limits)

    def counts(self, types: int) -> list[int]:
        """How many of each type were found."""
        numbers = [0] * types
        for one in self.found:
            numbers[one.type] += 1
        return numbers


@dataclass(frozen=True)
class Totals:
    """What a run found."""

    pictures: int
    unreadable: int
    instances: int
    types: tuple[int, ...] = ()  # of each type
    empty: int = 0  # pictures without any
    limits: Limits = field(default_factory=Limits)
    unwritten: int = 0  # pictures whose mask or overlay could not be written

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Totals:
        limits = Limits.from_json(values["limits"])
        return Totals(**{**values, "types": tuple(values["types"]), "limits": limits})


def found_words(totals: Totals, titles: Mapping[int, str] | None = None) -> str:
    """One sentence: how many things in how many pictures, and how many of each type that there are any of."""
    known = titles or {}
    used = [f"{count:,} of {known.get(number, f'type {number}')}" for number, count in enumerate(totals.types) if count]
    listed = f": {', '.join(used)}" if len(totals.types) > 1 and used else ""
    without = f" {_number(totals.empty, 'picture')} had none." if totals.empty and totals.instances else ""
    return f"Found {_number(totals.instances, 'thing')} in {_number(totals.pictures, 'picture')}{listed}.{without}"


def _number(count: int, word: str) -> str:
    return f"1 {word}" if count == 1 else f"{count:,} {word}s"


def record_of(detections: Detections, side: float) -> Record:
    """`side` is how many of the picture's pixels an object without a mask is taken to be wide and high."""
    found = tuple(_instance(one, detections, side) for one in detections)
    return Record(detections.source, detections.width, detections.height, found, limits=limits_of(detections))


def _instance(one: Detection, picture: Detections, side: float) -> Instance:
    box, mask = _box_around(one, picture, side if picture.size is None else one.size), None
    area = box[2] * box[3]
    if one.mask is not None and one.mask.any():  # an object may be wholly covered by others
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
        size=_rounded(one.size, 2),
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
