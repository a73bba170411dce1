"""MTFL: faces in the wild with five landmarks, as a folder of small square images and one `landmarks.csv`."""

from __future__ import annotations

import csv
import math
from pathlib import Path, PurePosixPath

import numpy as np

from tusk.data.dataset import Dataset, Float32Array, Truth, UInt8Array
from tusk.data.images import read_image
from tusk.data.registry import Entry, Request, register
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.errors import DataError, UsageError, nearest

SPLITS = ("train", "test")
TABLE = "landmarks.csv"
COLUMNS = ["split", "file", *(f"x{k}" for k in range(5)), *(f"y{k}" for k in range(5))]


class Mtfl:
    """`landmarks.csv` has the columns split, file, x0..x4, y0..y4.

    The five points are left eye, right eye, nose, left and right mouth corner, left and right as seen in the image.
    Coordinates are in pixels of the image as stored; images are given as they are, whatever their size.
    """

    def __init__(self, folder: str | Path, split: str = "train") -> None:
        if split not in SPLITS:
            raise UsageError(f"split '{split}'", "is not a split of MTFL", nearest(split, SPLITS))
        self._folder = Path(folder).absolute()
        self._files, self._points = _read_table(self._folder / TABLE, split)

    @property
    def name(self) -> str:
        return "mtfl"

    @property
    def class_names(self) -> tuple[str, ...]:
        return LANDMARKS

    def __len__(self) -> int:
        return len(self._files)

    def image(self, index: int) -> UInt8Array:
        return read_image(self.picture_file(index))

    def picture_file(self, index: int) -> Path:
        self._check(index)
        return self._folder / self._files[index]

    def truth(self, index: int) -> Truth:
        self._check(index)
        return Truth(points=self._points[index].copy(), classes=np.arange(len(LANDMARKS), dtype=np.int64))

    def _check(self, index: int) -> None:
        # Not Python's counting from the end: index -1 is a mistake in every dataset.
        if not 0 <= index < len(self):
            raise IndexError(f"image {index} of {len(self)}")


def _read_table(path: Path, split: str) -> tuple[list[str], Float32Array]:
    """The files of the split, and (N, 5, 2) their landmarks."""
    if not path.is_file():
        raise DataError(str(path), "does not exist", f"give the folder that holds {TABLE}")
    files: list[str] = []
    points: list[list[float]] = []
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = csv.reader(stream)
            if next(rows, None) != COLUMNS:
                raise DataError(str(path), "line 1 is not the expected header", "it must read " + ",".join(COLUMNS))
            for row in rows:
                file, values = _read_row(path, rows.line_num, row)
                if row[0] == split:
                    files.append(file)
                    points.append(values)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(str(path), "is not a CSV file in UTF-8", "replace it with an intact copy") from error
    if not files:
        raise DataError(str(path), f"has no line of the split '{split}'", "replace it with a complete copy")
    # (N, 10) x0..x4 y0..y4 -> (N, 5, 2)
    return files, np.array(points, np.float32).reshape(-1, 2, 5).transpose(0, 2, 1).copy()


def _read_row(path: Path, line: int, row: list[str]) -> tuple[str, list[float]]:
    fix = "correct or remove that line"
    if len(row) != len(COLUMNS):
        raise DataError(str(path), f"line {line} has {len(row)} fields instead of {len(COLUMNS)}", fix)
    if row[0] not in SPLITS:
        raise DataError(str(path), f"line {line} names the split '{row[0]}'", f"{fix}: it must be train or test")
    name = PurePosixPath(row[1])
    if not row[1] or name.is_absolute() or ".." in name.parts:
        raise DataError(str(path), f"line {line} names the file '{row[1]}', which is not inside of the folder", fix)
    try:
        values = [float(value) for value in row[2:]]
    except ValueError as error:
        raise DataError(str(path), f"line {line} has a coordinate that is not a number", fix) from error
    if not all(math.isfinite(value) for value in values):
        raise DataError(str(path), f"line {line} has a coordinate that is not finite", fix)
    return row[1], values


def _open(request: Request) -> Dataset:
    return Mtfl(request.folder("mtfl", "the folder with landmarks.csv", "faces"), split=request.split)


register(Entry("mtfl", "small faces in the wild, 5 landmarks", "a folder with landmarks.csv", False, _open))
