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
from pathlib import Path

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
    pictures = sorted((chosen.nuclei / "images").absolute().iterdir())
    held_out = pictures[3::4]
    training = [picture for picture in pictures if picture not in held_out]
    if chosen.list is not None:
        chosen.list.write_text("".join(f"{picture}\n" for picture in training), encoding="utf-8")
        return
    if chosen.model is None:
        sys.exit("Give --list FILE or --model RUN.")
    model = tusk.load(chosen.model)
    points = on = nuclei = near = 0
    overlaps: list[float] = []
    for picture, found in zip(held_out, model.detect(held_out), strict=True):
        labels = np.array(Image.open(chosen.nuclei / "labels" / picture.name))
        xy = found.xy  # (N, 2)
        columns, rows = xy.round().astype(int).T
        points += len(xy)
        on += int((labels[rows, columns] > 0).sum())
        middles = np.array(center_of_mass(labels > 0, labels, np.unique(labels[labels > 0])))[:, ::-1]  # (n, 2)
        away = np.linalg.norm(middles[:, None] - xy[None], axis=2)  # (n, N)
        overlaps += mask_overlaps(labels, found, away)
        nuclei += len(middles)
        near += int((away.min(1, initial=np.inf) <= NEAR).sum())
    print(
        f"{len(held_out)} pictures: of {points} points, {on / max(points, 1):.1%} lie on nuclei; "
        f"of {nuclei} nuclei, {near / nuclei:.1%} have a point within "
        f"{NEAR:.0f} pixels" + (f"; their masks have a mean IoU of {np.mean(overlaps):.1%}" if overlaps else "")
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
