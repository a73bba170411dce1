"""napari: a points table for each picture, which its own reader opens by drag and drop. Axes are row and column, in
pixels; (0, 0) is the centre of the top-left one, as in tusk."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from tusk.export.found import Found
from tusk.export.places import file_places
from tusk.io import atomic_write
from tusk.names import as_text, csv_line

COLUMNS = ("index", "axis-0", "axis-1", "type", "name", "instance", "score", "gain", "probability", "size")


def write(found: Found, folder: Path) -> Path:
    """`pictures.csv` says which table is of which picture."""
    places = file_places([picture.image for picture in found.pictures], ".csv")
    listed = [csv_line(("image", "table", "width", "height"))]
    for picture, place in zip(found.pictures, places, strict=True):
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")  # napari compares names as they are: nothing is escaped
        table.writerow(COLUMNS)
        for number, one in enumerate(picture.found):
            name = as_text(found.name(one))
            values = (one.instance, one.score, one.gain, one.probability, one.size)
            table.writerow((number, one.y, one.x, one.type, name, *values))
        path = folder / "points" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text.getvalue().encode(), flushed=False)
        relative = path.relative_to(folder).as_posix()
        listed.append(csv_line((picture.image, relative, str(picture.width), str(picture.height))))
    index = folder / "pictures.csv"
    atomic_write(index, b"".join(listed))
    return index
