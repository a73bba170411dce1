"""Label Studio: `tasks.json` to import, with all that was found in a picture as one prediction, and `interface.xml`,
the labelling interface that knows the types.

Coordinates are percentages of the picture. A picture is named as Label Studio's local storage does: set its document
root to the folder that the pictures were read from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

import numpy as np

from tusk.detection.detections import BoolArray
from tusk.detection.palette import type_colours
from tusk.detection.records import Instance, Record
from tusk.export.found import Found, mask_of
from tusk.export.xml import add, write_xml
from tusk.io import atomic_write
from tusk.names import as_text

_LOCAL = "/data/local-files/?d="
_TOOLS = {"point": "KeyPointLabels", "box": "RectangleLabels", "mask": "BrushLabels"}
_POINT = 0.5  # percent of the picture's width: how large a point is drawn
_BITS, _RUN_BITS = 8, (3, 4, 8, 16)  # of a value, and of the lengths of runs


def write(found: Found, folder: Path) -> Path:
    tasks = [_task(found, picture) for picture in found.pictures]
    path = folder / "tasks.json"
    atomic_write(path, json.dumps(tasks, ensure_ascii=False).encode())
    view = Element("View")
    add(view, "Image", name="image", value="$image")
    for tool, tag in _TOOLS.items():
        labels = add(view, tag, name=tool, toName="image")
        for name, colour in zip(found.classes, type_colours(len(found.classes)), strict=True):
            add(labels, "Label", value=name, background="#{:02x}{:02x}{:02x}".format(*colour))
    write_xml(folder / "interface.xml", view, declaration=False)  # it is pasted into a form
    return path


def _task(found: Found, picture: Record) -> dict[str, Any]:
    results = [result for one in picture.found for result in _results(picture, one, as_text(found.name(one)))]
    mean = float(np.mean([one.score for one in picture.found])) if picture.found else 0.0
    prediction = {"model_version": as_text(found.model), "score": round(mean, 4), "result": results}
    # Quoted byte by byte: a name need not be Unicode.
    return {"data": {"image": _LOCAL + quote(os.fsencode(picture.image))}, "predictions": [prediction]}


def _results(picture: Record, one: Instance, name: str) -> Iterator[dict[str, Any]]:
    """The point, its box and its mask; these two hang on the point."""

    def result(tool: str, value: dict[str, Any]) -> dict[str, Any]:
        labels = _TOOLS[tool].lower()
        above = {} if tool == "point" else {"parentID": f"point-{one.instance}"}
        return {
            "id": f"{tool}-{one.instance}",
            **above,
            "from_name": tool,
            "to_name": "image",
            "type": labels,
            "original_width": picture.width,
            "original_height": picture.height,
            "image_rotation": 0,
            "score": one.score,
            "meta": {"gain": one.gain, "probability": one.probability, "size": one.size},
            "value": {**value, labels: [name]},
        }

    width, height = 100 / picture.width, 100 / picture.height
    yield result("point", {"x": (one.x + 0.5) * width, "y": (one.y + 0.5) * height, "width": _POINT})
    left, top, wide, high = one.box
    box = {"x": left * width, "y": top * height, "width": wide * width, "height": high * height, "rotation": 0}
    yield result("box", box)
    mask = mask_of(picture, one)
    if mask is not None:
        yield result("mask", {"format": "rle", "rle": brush_runs(mask)})


def brush_runs(mask: BoolArray) -> list[int]:
    """A mask (H, W) as Label Studio's brush stores it: runs of the bytes of an RGBA picture, packed into bits.

    Head: 32 bits for the number of values, 5 for the bits of one, less 1, and four times 4 for the bits that a length
    may have, less 1. Then for each run: a 1, which of the four holds its length, its length less 1, and its value.
    """
    flat = mask.reshape(-1)
    edges = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    bits = [f"{4 * flat.size:032b}", f"{_BITS - 1:05b}", *(f"{size - 1:04b}" for size in _RUN_BITS)]
    longest = 1 << _RUN_BITS[-1]
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        value = f"{255 if flat[start] else 0:08b}"
        left = 4 * (stop - start)  # red, green, blue and opacity are alike
        while left:
            run = min(left, longest)
            which = next(number for number, size in enumerate(_RUN_BITS) if run <= 1 << size)
            bits.append(f"1{which:02b}{run - 1:0{_RUN_BITS[which]}b}{value}")
            left -= run
    text = "".join(bits)
    text += "0" * (-len(text) % 8)
    return [int(text[place : place + 8], 2) for place in range(0, len(text), 8)]
