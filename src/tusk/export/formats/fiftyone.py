"""FiftyOne's own format for detections in images, `FiftyOneImageDetectionDataset`: boxes in shares of the picture, the
point and its scores as attributes. Give FiftyOne the pictures' folder as `data_path` and this file as `labels_path`.

A picture is called by its path without its ending, as FiftyOne looks it up. This format knows no masks: FiftyOne reads
those from the COCO export.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path, PurePosixPath

from tusk.export.found import Found
from tusk.io import atomic_write
from tusk.names import as_text

_ATTRIBUTES = ("x", "y", "instance", "type", "gain", "probability", "size")


def write(found: Found, folder: Path) -> Path:
    names = [as_text(picture.image) for picture in found.pictures]
    bare = [_without_ending(name) for name in names]
    often = Counter(bare)
    labels = {}
    for picture, name, short in zip(found.pictures, names, bare, strict=True):
        scale = (picture.width, picture.height, picture.width, picture.height)
        labels[short if often[short] == 1 else name] = [
            {
                "label": as_text(found.name(one)),
                "bounding_box": [edge / side for edge, side in zip(one.box, scale, strict=True)],
                "confidence": one.score,
                "attributes": {kind: getattr(one, kind) for kind in _ATTRIBUTES},
            }
            for one in picture.found
        ]
    path = folder / "labels.json"
    content = {"classes": [as_text(name) for name in found.classes], "labels": labels}
    atomic_write(path, json.dumps(content, ensure_ascii=False).encode())
    return path


def _without_ending(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if path.name else name
