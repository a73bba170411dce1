"""Points against masks of nuclei, on pictures that were not trained on.

    python benchmarks/nuclei.py NUCLEI --list nuclei-train.txt      # three of four pictures, to train on
    tusk train nuclei-train.txt --minutes 30 --out runs/nuclei
    python benchmarks/nuclei.py NUCLEI --model runs/nuclei          # every fourth

NUCLEI holds `images` and `labels` (16 bit, 0 for the background, i for nucleus i) of the same names, as made from the
2018 Data Science Bowl. Points are those that `tusk detect` gives.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.ndimage import center_of_mass

import tusk

NEAR = 8.0  # pixels from the middle of a nucleus


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("nuclei", type=Path)
    flags.add_argument("--list", type=Path, help="write the names of the training pictures here, and stop")
    flags.add_argument("--model", help="a run or a model file")
    chosen = flags.parse_args()
    if chosen.list is not None:
        apart = held_out(chosen.nuclei)
        pictures = sorted((chosen.nuclei / "images").absolute().iterdir())
        training = [picture for picture in pictures if picture not in apart]
        chosen.list.write_text("".join(f"{picture}\n" for picture in training), encoding="utf-8")
        return
    if chosen.model is None:
        sys.exit("Give --list FILE or --model RUN.")
    print(measure(tusk.load(chosen.model), chosen.nuclei))


@dataclass(frozen=True)
class NucleiFigures:
    """In percent."""

    on: float  # points on a nucleus
    near: float  # nuclei with a point near their middle
    overlap: float | None  # mean IoU of the masks of those; None without masks
    points: int
    nuclei: int
    pictures: int

    def __str__(self) -> str:
        return (
            f"{self.pictures} pictures: of {self.points} points, {self.on:.1f}% lie on nuclei; "
            f"of {self.nuclei} nuclei, {self.near:.1f}% have a point within {NEAR:.0f} pixels"
            + ("" if self.overlap is None else f"; their masks have a mean IoU of {self.overlap:.1f}%")
        )


def held_out(nuclei: Path) -> list[Path]:
    """The pictures that are not trained on: every fourth."""
    return sorted((nuclei / "images").absolute().iterdir())[3::4]


def measure(model: tusk.Model, nuclei: Path, every: int = 1, **detection: Any) -> NucleiFigures:
    """every: only each so many-th of the pictures held out; detection: settings in place of the model's own."""
    pictures = held_out(nuclei)[::every]
    points = on = count = near = 0
    overlaps: list[float] = []
    for picture, found in zip(pictures, model.detect_iter(pictures, **detection), strict=True):
        labels = np.array(Image.open(nuclei / "labels" / picture.name))
        xy = found.xy  # (N, 2)
        columns, rows = xy.round().astype(int).T
        points += len(xy)
        on += int((labels[rows, columns] > 0).sum())
        middles = np.array(center_of_mass(labels > 0, labels, np.unique(labels[labels > 0])))[:, ::-1]  # (n, 2)
        away = np.linalg.norm(middles[:, None] - xy[None], axis=2)  # (n, N)
        overlaps += mask_overlaps(labels, found, away)
        count += len(middles)
        near += int((away.min(1, initial=np.inf) <= NEAR).sum())
    return NucleiFigures(
        on=100 * on / max(points, 1),
        near=100 * near / max(count, 1),
        overlap=100 * float(np.mean(overlaps)) if overlaps else None,
        points=points,
        nuclei=count,
        pictures=len(pictures),
    )


def mask_overlaps(labels: np.ndarray, found: tusk.Detections, away: np.ndarray) -> list[float]:
    """IoU of each nucleus that has a point near (labels (H, W), distances (n, N)) with the mask of the nearest."""
    if found.mask_map is None or not len(found):
        return []
    overlaps = []
    for number, distances in zip(np.unique(labels[labels > 0]), away, strict=True):
        nearest = int(distances.argmin())
        if distances[nearest] <= NEAR:
            nucleus, mask = labels == number, found.mask_map == found.instance[nearest] + 1
            overlaps.append(float((nucleus & mask).sum() / max(1, (nucleus | mask).sum())))
    return overlaps


if __name__ == "__main__":
    main()
