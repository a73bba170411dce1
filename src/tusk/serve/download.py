"""What was found, as a file to take home: the tables of `tusk detect`, or any format of `tusk export`."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tusk.detection.labels import TypeLabels
from tusk.detection.records import Record
from tusk.export.csv import write_tables
from tusk.export.formats import FORMATS, find_format
from tusk.export.found import Found

TABLES = "tables"
KINDS = {
    TABLES: "tables: points, and counts of each picture (CSV)",
    **{name: one.words for name, one in FORMATS.items()},
}


def download(
    kind: str, records: Sequence[Record], types: int, labels: TypeLabels, model: str = "tusk"
) -> tuple[str, str, bytes]:
    """types: how many numbers were ever used; labels: of those that can be seen; model: what found the points
    -> file name, media type, content: the file itself, or a ZIP where there are several."""
    with tempfile.TemporaryDirectory(prefix="tusk-serve-") as place:
        folder = Path(place)
        if kind == TABLES:
            write_tables(folder, records, types, labels)
            (folder / "unreadable.csv").unlink()  # what cannot be read is said on the page
        else:
            names = tuple(labels.titles.get(number, "") for number in range(types))
            find_format(kind)(Found(tuple(records), names, model=model), folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if len(files) == 1:
            media = "application/json" if files[0].suffix == ".json" else "application/octet-stream"
            return f"tusk-{kind}{files[0].suffix}", media, files[0].read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, path.relative_to(folder).as_posix())
        return f"tusk-{kind}.zip", "application/zip", buffer.getvalue()
