"""Results as `tusk detect` writes them, with everything in them that could break a format."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.pictures import disc_mask
from tusk.detection.detections import Detections
from tusk.detection.ledger import Manifest
from tusk.detection.records import Record, record_of
from tusk.export.results import write_results

# The last two have a byte that is no text, and characters that XML cannot hold.
PICTURES = [
    "a.png", "a.jpg", "sub/Größe 图.tif", "=so\nurce, \"quoted\" '.png", "none.png", "stack.tif#3", "x\udcff.png",
    "\x07\r.png",
]  # fmt: skip
NAMES = {0: 'cell, "large"', 1: "naïve 图 <b>&amp;'", 2: "=1+1"}
TYPES = 4  # the last has no name
SIZE = 48, 40  # width, height


def records(*, masks: bool) -> list[Record]:
    """One for each picture; that of 'none.png' is empty."""
    rng = np.random.default_rng(5)
    made = []
    for number, name in enumerate(PICTURES):
        count = 0 if name == "none.png" else 3
        xy = np.array([[8.25, 9.5], [30.0, 20.13], [0.0, 39.0]])[:count]
        mask = np.zeros(SIZE[::-1], np.uint16)
        if masks:
            for instance, (x, y) in enumerate(xy):
                mask[disc_mask(40, 48, (x, y, 6)) > 0.5] = instance + 1
                if instance == 1:
                    mask[disc_mask(40, 48, (x, y, 2)) > 0.5] = 0  # a hole
                    mask[30:33, 40:44] = 2  # and a second part
        found = Detections(
            source=name,
            width=SIZE[0],
            height=SIZE[1],
            xy=xy,
            type=(np.arange(count) + number) % TYPES,
            score=np.sort(rng.random(count))[::-1],
            gain=rng.normal(size=count) * 5,
            probability=rng.random(count),
            descriptor=np.zeros((count, 2)),
            instance=np.arange(count),
            mask_map=mask if masks else None,
            box_side=9.0,
        )
        made.append(record_of(found, 9.0))
    return made


def write_folder(folder: Path, *, masks: bool, finished: bool = True) -> list[Record]:
    """A folder of results; -> what is in it."""
    folder.mkdir(parents=True)
    every = records(masks=masks)
    totals = write_results(folder, lambda: every, TYPES)
    manifest = Manifest("0", "abc", "photos", len(every), "", 16, None, 0.0, 0.0, 8, False, False, {})
    replace(manifest, totals=totals if finished else None).write(folder)
    return every
