"""COCO Keypoints: `keypoints` and `skeleton` in every category, one keypoint in every annotation."""

from __future__ import annotations

from pathlib import Path

from tusk.export.formats.coco import write_coco_file
from tusk.export.found import Found


def write(found: Found, folder: Path) -> Path:
    return write_coco_file(found, folder / "annotations" / "person_keypoints_default.json", keypoints=True)
