"""YOLO: `labels/NAME.txt` for every picture, with a line `class x y width height` in shares of its size for each box,
and the names of the classes in `data.yaml` and `classes.txt`.

The tools look for each label beside its picture, with `images` for `labels` in the path: put the pictures into a
folder `images` here.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from tusk.errors import visible
from tusk.export.found import Found
from tusk.export.places import file_places
from tusk.io import atomic_write
from tusk.names import as_text


def write(found: Found, folder: Path) -> Path:
    places = file_places([picture.image for picture in found.pictures], ".txt")
    (folder / "labels").mkdir()
    for picture, place in zip(found.pictures, places, strict=True):
        lines = []
        for one in picture.found:
            left, top, width, height = one.box
            x, y = (left + width / 2) / picture.width, (top + height / 2) / picture.height
            numbers = (x, y, width / picture.width, height / picture.height)
            lines.append(f"{found.class_number(one)} " + " ".join(f"{min(1.0, value):.8f}" for value in numbers))
        path = folder / "labels" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, "".join(f"{line}\n" for line in lines).encode(), flushed=False)
    names = [visible(as_text(name)) for name in found.classes]  # a line each
    atomic_write(folder / "classes.txt", "".join(f"{name}\n" for name in names).encode())
    data = {"path": ".", "train": "images", "val": "images", "nc": len(names), "names": names}
    path = folder / "data.yaml"
    atomic_write(path, yaml.safe_dump(data, allow_unicode=True, sort_keys=False).encode())
    return path
