"""From the parts of a run to the files that people want: detections.csv, counts.csv, unreadable.csv,
coco.json.

Records are read anew for each file and one at a time, so that a million pictures need no more memory than one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tusk.detection.labels import TypeLabels
from tusk.detection.records import PICTURES, Totals
from tusk.export.coco import Records, write_coco
from tusk.export.csv import write_tables, write_unwritten


def write_results(folder: Path, records: Records, types: int, labels: TypeLabels | None = None) -> Totals:
    """All files; each is there as a whole or not at all."""
    totals = write_tables(folder, records(), types, labels)
    if any((folder / kind).exists() for kind in PICTURES):
        totals = replace(totals, unwritten=write_unwritten(folder, records()))
    write_coco(folder / "coco.json", records, types, labels)
    return totals
