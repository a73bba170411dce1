"""A first look at pictures, without learning; a training does the same before it starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tusk.data.sources import find_files
from tusk.errors import DataError, UsageError
from tusk.folders import new_folder
from tusk.io import atomic_write
from tusk.report.preview import preview_png
from tusk.training.preview import Preview, look_at

PathLike = str | os.PathLike[str]


def preview_pictures(
    source: PathLike | Sequence[PathLike], thing_size: float | None = None, out: Path | None = None
) -> tuple[Preview, Path]:
    """-> what was seen, and the picture that shows it."""
    if thing_size is not None and thing_size <= 0:
        raise UsageError("--thing-size", f"{thing_size:g} is no size", "give a number of pixels")
    if out is not None and out.suffix.lower() != ".png":
        raise UsageError("--out", f"{out} is no PNG file", f"write to {out.with_suffix('.png')}")
    found = find_files(source)
    if not found.files:
        raise DataError(str(found.origin), "there are no pictures in it", "name a folder with PNG, JPEG or TIFF files")
    seen = look_at(found.files, thing_size)
    path = out or new_folder(Path("runs/preview") / found.name) / "preview.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, preview_png(seen))
    return seen, path
