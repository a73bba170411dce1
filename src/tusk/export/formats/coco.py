"""COCO: what `pycocotools` and most training tools read.

Every annotation has a segmentation: the mask as compressed run lengths, or the box as a polygon.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tusk.detection.records import Instance, Record
from tusk.export.found import Found
from tusk.io import atomic_write
from tusk.names import as_text


def write(found: Found, folder: Path) -> Path:
    return write_coco_file(found, folder / "annotations" / "instances_default.json", keypoints=False)


def write_coco_file(found: Found, path: Path, *, keypoints: bool) -> Path:
    """With `keypoints`, every category has one keypoint, and every annotation its place."""
    annotations: list[dict[str, Any]] = []
    for number, picture in enumerate(found.pictures, 1):
        for one in picture.found:
            place = {"keypoints": [one.x, one.y, 2], "num_keypoints": 1} if keypoints else {}  # 2: visible
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": found.class_number(one) + 1,
                    "bbox": list(one.box),
                    "area": one.area,
                    "iscrowd": 0,
                    "segmentation": _segmentation(picture, one),
                    **place,
                    "score": one.score,
                    "gain": one.gain,
                }
            )
    point = {"keypoints": ["point"], "skeleton": []} if keypoints else {}
    content = {
        "info": {"description": f"found by {as_text(found.model)}"},
        "images": [
            {"id": number, "file_name": as_text(picture.image), "width": picture.width, "height": picture.height}
            for number, picture in enumerate(found.pictures, 1)
        ],
        "annotations": annotations,
        "categories": [
            {"id": number, "name": as_text(name), "supercategory": "type", **point}
            for number, name in enumerate(found.classes, 1)
        ],
    }
    path.parent.mkdir(exist_ok=True)
    atomic_write(path, json.dumps(content, ensure_ascii=False).encode())
    return path


def _segmentation(picture: Record, one: Instance) -> list[list[float]] | dict[str, Any]:
    if one.mask is not None:
        return {"size": [picture.height, picture.width], "counts": one.mask}
    left, top, width, height = one.box
    right, bottom = left + width, top + height
    return [[left, top, right, top, right, bottom, left, bottom]]
