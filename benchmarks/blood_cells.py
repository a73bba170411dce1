"""Points against boxes of blood cells, as in the collection BCCD (MIT licence).

    tusk train BCCD/images --out runs/blood
    python benchmarks/blood_cells.py BCCD --model runs/blood

BCCD holds `images` and boxes in Pascal VOC form below `BCCD/Annotations`. A box is found where a point lies in it, and
doubled where more than one does; a point counts for the smallest box around it. Many cells have no box, so points
outside of boxes need not be wrong. Each type is named by the class that it has the largest share of; "balanced" is the
mean over the classes of how many of their points have a type of that name.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tusk

Box = tuple[str, float, float, float, float]  # class, left, top, right, bottom


@dataclass(frozen=True)
class BloodFigures:
    """In percent, all of them."""

    found: dict[str, float]  # of the boxes of each class
    doubled: float  # boxes with more than one point
    on_cell: float  # points in a box
    balanced: float  # points of a type that is named right, mean over the classes
    points: int

    def __str__(self) -> str:
        found = ", ".join(f"{name} {share:.1f}" for name, share in self.found.items())
        return (
            f"found {found}; boxes with more than one point {self.doubled:.1f}; of {self.points} points in a box "
            f"{self.on_cell:.1f}; types, balanced {self.balanced:.1f}"
        )


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("bccd", type=Path)
    flags.add_argument("--model", required=True, help="a run or a model file")
    flags.add_argument("--every", type=int, default=1, help="only each so many-th picture")
    chosen = flags.parse_args()
    print(measure(tusk.load(chosen.model), chosen.bccd, chosen.every))


def measure(model: tusk.Model, bccd: Path, every: int = 1, **detection: Any) -> BloodFigures:
    """detection: settings in place of the model's own."""
    pictures = sorted((bccd / "images").iterdir())[::every]
    found = model.detect_iter(pictures, **detection)
    return score(
        (read_boxes(bccd / "BCCD" / "Annotations" / f"{picture.stem}.xml"), points.xy, points.type)
        for picture, points in zip(pictures, found, strict=True)
    )


def score(pictures: Iterable[tuple[Sequence[Box], np.ndarray, np.ndarray]]) -> BloodFigures:
    """pictures: of each its boxes, its points (N, 2) and their types (N,)."""
    hits: list[tuple[str, int]] = []  # class of each box, and how many points are its own
    table: defaultdict[int, Counter[str]] = defaultdict(Counter)  # type -> classes of its points
    points = 0
    for boxes, xy, types in pictures:
        count = [0] * len(boxes)
        points += len(xy)
        for (x, y), kind in zip(xy, types, strict=True):
            around = [
                ((right - left) * (bottom - top), place)
                for place, (_, left, top, right, bottom) in enumerate(boxes)
                if left <= x <= right and top <= y <= bottom
            ]
            if around:
                place = min(around)[1]
                count[place] += 1
                table[int(kind)][boxes[place][0]] += 1
        hits += [(box[0], number) for box, number in zip(boxes, count, strict=True)]
    classes = sorted({name for name, _ in hits})
    on = {name: sum(row[name] for row in table.values()) for name in classes}
    named = {kind: max(classes, key=lambda name: row[name] / max(1, on[name])) for kind, row in table.items()}
    right = [
        sum(row[name] for kind, row in table.items() if named[kind] == name) / max(1, on[name]) for name in classes
    ]
    return BloodFigures(
        found={name: 100 * float(np.mean([number > 0 for own, number in hits if own == name])) for name in classes},
        doubled=100 * float(np.mean([number > 1 for _, number in hits])),
        on_cell=100 * sum(on.values()) / max(1, points),
        balanced=100 * float(np.mean(right)),
        points=points,
    )


def read_boxes(file: Path) -> list[Box]:
    boxes: list[Box] = []
    for thing in ET.parse(file).getroot().iter("object"):
        left, top, right, bottom = (float(thing.findtext(f"bndbox/{side}") or 0) for side in _SIDES)
        boxes.append((thing.findtext("name") or "", left, top, right, bottom))
    return boxes


_SIDES = ("xmin", "ymin", "xmax", "ymax")

if __name__ == "__main__":
    main()
