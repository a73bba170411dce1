"""Detections as COCO writes them: types are categories of one keypoint each, numbers count from 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tusk.detection.records import Instance, Record
from tusk.names import as_text


def coco_image(record: Record, image_id: int) -> dict[str, Any]:
    image = {"id": image_id, "file_name": as_text(record.image), "width": record.width, "height": record.height}
    # Beyond COCO: its count is a lower bound, for every keypoint was used.
    return {**image, "at_limit": True} if record.limits.at_limit else image


def coco_annotation(record: Record, one: Instance, image_id: int, annotation_id: int) -> dict[str, Any]:
    annotation: dict[str, Any] = {
        "id": annotation_id,
        "image_id": image_id,
        "category_id": one.type + 1,
        "keypoints": [one.x, one.y, 2],  # 2: labelled and visible
        "num_keypoints": 1,
        "bbox": list(one.box),
        "area": one.area,
        "iscrowd": 0,
        "score": one.score,
        "gain": one.gain,
        "probability": one.probability,
    }
    if one.mask is not None:
        annotation["segmentation"] = {"size": [record.height, record.width], "counts": one.mask}
    return annotation


def coco_category(number: int, name: str | None = None) -> dict[str, Any]:
    return {
        "id": number + 1,
        "name": name or f"type {number}",
        "supercategory": "type",
        "keypoints": ["point"],
        "skeleton": [],
    }


def coco_of(record: Record, image_id: int, types: int, names: Sequence[str] | None = None) -> dict[str, Any]:
    """One picture by itself."""
    annotations = [coco_annotation(record, one, image_id, number) for number, one in enumerate(record.found, 1)]
    known = dict(enumerate(names or ()))
    categories = [coco_category(number, known.get(number)) for number in range(types)]
    return {"images": [coco_image(record, image_id)], "annotations": annotations, "categories": categories}
