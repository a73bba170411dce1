"""The formats of other tools: a file here with a function `write`, and a line in `FORMATS`, make a new one."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tusk.errors import UsageError, nearest
from tusk.export.found import Found


class Write(Protocol):
    """Writes files into an empty folder; -> the one to open first."""

    def __call__(self, found: Found, folder: Path) -> Path: ...


@dataclass(frozen=True)
class Format:
    """A format and the file that writes it."""

    module: str
    words: str


FORMATS = {
    "coco": Format("coco", "COCO: boxes and segmentations (masks as run lengths)"),
    "coco-keypoints": Format("coco_keypoints", "COCO Keypoints: a category of one keypoint for each type"),
    "yolo": Format("yolo", "YOLO: a text file of normalised boxes for each picture, and the names"),
    "voc": Format("voc", "Pascal VOC: an XML file of boxes for each picture"),
    "cvat": Format("cvat", "CVAT for images 1.1: points, boxes and masks in groups"),
    "label-studio": Format("label_studio", "Label Studio: predictions to correct, and the labelling interface"),
    "csv": Format("csv", "one table with names and boxes"),
    "napari": Format("napari", "napari: a points table for each picture"),
    "trackmate": Format("trackmate", "TrackMate (Fiji): spots, a picture for each frame"),
    "geojson": Format("geojson", "GeoJSON as QuPath reads it: points or outlines for each picture"),
    "fiftyone": Format("fiftyone", "FiftyOne: samples with keypoints and detections"),
}


def find_format(name: str) -> Write:
    """The writer of that format."""
    if name not in FORMATS:
        raise UsageError(f"--to {name}", "there is no such format", nearest(name, FORMATS))
    write: Write = importlib.import_module(f"tusk.export.formats.{FORMATS[name].module}").write
    return write
