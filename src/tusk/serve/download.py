"""What was found, as a file to take home. A format is one entry of `FORMATS`: a function that writes into a folder."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tusk.detection.labels import TypeLabels
from tusk.detection.records import Record
from tusk.export.coco import write_coco
from tusk.export.csv import write_tables

Write = Callable[[Path, Sequence[Record], int, TypeLabels], None]  # folder, pictures, number of types, their names


@dataclass(frozen=True)
class Format:
    title: str
    write: Write


def _csv(folder: Path, records: Sequence[Record], types: int, labels: TypeLabels) -> None:
    write_tables(folder, records, types, labels)
    (folder / "unreadable.csv").unlink()  # what cannot be read is said on the page


def _coco(folder: Path, records: Sequence[Record], types: int, labels: TypeLabels) -> None:
    write_coco(folder / "coco.json", lambda: records, types, labels)


FORMATS = {"csv": Format("CSV tables", _csv), "coco": Format("COCO JSON", _coco)}


def download(kind: str, records: Sequence[Record], types: int, labels: TypeLabels) -> tuple[str, str, bytes]:
    """-> file name, media type, content: the file itself, or a ZIP where there are several."""
    with tempfile.TemporaryDirectory(prefix="tusk-serve-") as place:
        folder = Path(place)
        FORMATS[kind].write(folder, records, types, labels)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if len(files) == 1:
            media = "application/json" if files[0].suffix == ".json" else "application/octet-stream"
            return files[0].name, media, files[0].read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, path.relative_to(folder).as_posix())
        return f"tusk-{kind}.zip", "application/zip", buffer.getvalue()
