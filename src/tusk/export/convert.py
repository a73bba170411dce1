"""From a folder that `tusk detect` wrote to the files of another tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tusk.export.formats import find_format
from tusk.export.found import read_results
from tusk.folders import results_folder


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    file: Path  # the one to open first
    pictures: int
    points: int


def export_results(
    results: Path,
    to: str,
    out: Path | None = None,
    names: Mapping[int, str] | None = None,
    *,
    started: Callable[[Path], None] = lambda _: None,
) -> Exported:
    """The results of a finished `tusk detect` in the format `to`, one of `FORMATS`.

    out: by default a new folder under runs/export; names: what types are called; started: called with the folder once
    nothing can be refused any more.
    """
    write = find_format(to)  # refused before anything is read
    found = read_results(results, names)
    with results_folder(out, Path("runs/export") / f"{results.resolve().name}-{to}") as place:
        folder = place.make()
        started(folder)
        file = write(found, folder)
    return Exported(folder, file, len(found.pictures), sum(len(picture.found) for picture in found.pictures))
