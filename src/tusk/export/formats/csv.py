"""One table of everything, with the names of the types; texts as in `tusk.names`: spreadsheets compute nothing."""

from __future__ import annotations

from pathlib import Path

from tusk.export.found import Found
from tusk.io import atomic_file
from tusk.names import csv_line

COLUMNS = (
    "image", "instance", "type", "name", "x", "y", "score", "gain", "probability", "size",
    "left", "top", "width", "height", "image_width", "image_height",
)  # fmt: skip


def write(found: Found, folder: Path) -> Path:
    path = folder / "points.csv"
    with atomic_file(path) as file:
        file.write(csv_line(COLUMNS))
        for picture in found.pictures:
            for one in picture.found:
                values = (one.x, one.y, one.score, one.gain, one.probability, one.size, *one.box)
                sizes = (picture.width, picture.height)
                name = found.name(one)
                row = (picture.image, str(one.instance), str(one.type), name, *map(repr, values), *map(str, sizes))
                file.write(csv_line(row))
    return path
