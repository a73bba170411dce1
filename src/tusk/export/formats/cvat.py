"""CVAT's own XML, "CVAT for images 1.1": for each thing its point, its box and, where there is one, its mask, in one
group. Coordinates are from the picture's top-left corner."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from tusk.detection.palette import type_colours
from tusk.detection.records import Instance, Record
from tusk.export.found import Found, mask_of
from tusk.export.xml import add, write_xml

_ATTRIBUTES = ("instance", "score", "gain", "probability", "size")


def write(found: Found, folder: Path) -> Path:
    root = Element("annotations")
    add(root, "version", "1.1")
    task = add(add(root, "meta"), "task")
    add(task, "name", "tusk")
    add(task, "size", len(found.pictures))
    add(task, "mode", "annotation")
    labels = add(task, "labels")
    for name, colour in zip(found.classes, type_colours(len(found.classes)), strict=True):
        label = add(labels, "label")
        add(label, "name", name)
        add(label, "color", "#{:02x}{:02x}{:02x}".format(*colour))
        add(label, "type", "any")
        attributes = add(label, "attributes")
        for kind in _ATTRIBUTES:
            attribute = add(attributes, "attribute")
            for tag, text in (("name", kind), ("mutable", "False"), ("input_type", "text"), ("default_value", "")):
                add(attribute, tag, text)
            add(attribute, "values", "")
    for number, picture in enumerate(found.pictures):
        image = add(root, "image", id=number, name=picture.image, width=picture.width, height=picture.height)
        for group, one in enumerate(picture.found, 1):
            _add_shapes(image, picture, one, found.name(one), group)
    path = folder / "annotations.xml"
    write_xml(path, root)
    return path


def _add_shapes(image: Element, picture: Record, one: Instance, label: str, group: int) -> None:
    left, top, width, height = one.box
    common = {"label": label, "source": "auto", "occluded": 0, "z_order": 0, "group_id": group}
    shapes = [
        add(image, "points", points=f"{one.x + 0.5:.2f},{one.y + 0.5:.2f}", **common),
        add(
            image,
            "box",
            xtl=f"{left:.2f}",
            ytl=f"{top:.2f}",
            xbr=f"{left + width:.2f}",
            ybr=f"{top + height:.2f}",
            **common,
        ),
    ]
    mask = mask_of(picture, one)
    if mask is not None:
        x, y, wide, high = map(int, one.box)  # of a mask: whole pixels
        runs = ", ".join(map(str, _row_runs(mask[y : y + high, x : x + wide])))
        shapes.append(add(image, "mask", rle=runs, left=x, top=y, width=wide, height=high, **common))
    for shape in shapes:
        for kind in _ATTRIBUTES:
            add(shape, "attribute", getattr(one, kind), name=kind)


def _row_runs(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
    """Lengths of runs of 0 and 1 in turn, row after row, of the part within the box."""
    flat = mask.reshape(-1)
    edges = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    counts: list[int] = np.diff(edges).tolist()
    return [0, *counts] if flat[0] else counts
