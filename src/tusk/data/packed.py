"""Packed files: one HDF5 layout for every dataset that tusk makes or converts.

    images            (N, H, W, 3) uint8, one chunk per image
    masks             (N, H, W) uint8, one chunk per image: 0 background, i = thing i-1
    points            (N, n, 2) float32, padded with NaN        boxes    (N, n, 4) float32, padded with NaN
    classes           (N, n) int64, padded with -1
    attributes/NAME   (N, n) int64, padded with -1; attribute `names`: a JSON list
    counts/...        (N,) int64: how many entries of points, boxes, classes and attributes/NAME are not padding
    known             (N,) bool: False where there is no truth at all

All but `images` and `known` are there only if the dataset has them. Attributes of the file: `format` ("tusk-packed"),
`version`, `dataset` (its name), `class_names` (a JSON list) and `provenance` (JSON, see Provenance).
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Attribute, Int64Array, Truth, UInt8Array
from tusk.data.packed_writer import FORMAT, VERSION, PackedWriter, Progress, Provenance, load_h5py, write_packed
from tusk.errors import DataError

__all__ = ["PackedDataset", "PackedWriter", "Progress", "Provenance", "write_packed"]

# What h5py raises, depending on where in a file the damage is.
_DAMAGE = (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError)


@dataclass(frozen=True)
class _Lists:
    """Padded rows, and how long each one really is."""

    values: npt.NDArray[Any]
    counts: Int64Array

    def row(self, index: int) -> npt.NDArray[Any]:
        return self.values[index, : self.counts[index]]


@dataclass(frozen=True)
class _Header:
    name: str
    class_names: tuple[str, ...]
    provenance: Provenance
    shape: tuple[int, int, int]  # images, height, width
    has_masks: bool
    lists: tuple[str, ...]  # the paths of points, boxes, classes and attributes that the file has
    attribute_names: tuple[tuple[str, tuple[str, ...]], ...]


class PackedDataset:
    """A packed file as a Dataset, or some rows of it. Opened anew in every process that reads it; may be pickled."""

    def __init__(self, path: Path | str, rows: Iterable[int] | None = None) -> None:
        self.path = Path(path)
        self._file: Any = None
        # Kept, since looking up a part of an HDF5 file takes longer than reading a small image from it.
        self._pixel_data: dict[str, Any] = {}
        self._process = 0
        self._lists: dict[str, _Lists] | None = None
        self._known: npt.NDArray[np.bool_] | None = None
        self._header = self._read_header()
        self._rows = None if rows is None else np.fromiter(rows, np.int64)
        total = self._header.shape[0]
        if self._rows is not None and len(self._rows) and not 0 <= self._rows.min() <= self._rows.max() < total:
            raise DataError(str(self.path), f"holds {total:,} images, fewer than were asked for", "ask for fewer")
        self.close()

    @property
    def name(self) -> str:
        return self._header.name

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._header.class_names

    @property
    def provenance(self) -> Provenance:
        return self._header.provenance

    def __len__(self) -> int:
        return self._header.shape[0] if self._rows is None else len(self._rows)

    def image(self, index: int) -> UInt8Array:
        return self._pixels("images", self._row(index))

    def truth(self, index: int) -> Truth | None:
        row = self._row(index)
        lists = self._load_lists()
        if self._known is not None and not self._known[row]:
            return None
        mask = self._pixels("masks", row) if self._header.has_masks else None
        if mask is None and not lists:
            return None
        found = {path: column.row(row).copy() for path, column in lists.items()}
        attributes = {
            name: Attribute(found[f"attributes/{name}"], names) for name, names in self._header.attribute_names
        }
        return Truth(found.get("points"), found.get("boxes"), found.get("classes"), mask, attributes)

    def counts(self) -> Int64Array:
        """How many things each image has, without reading any image; zeros where the file does not say."""
        lists = self._load_lists()
        counts = next(iter(lists.values())).counts if lists else np.zeros(self._header.shape[0], np.int64)
        return counts.copy() if self._rows is None else counts[self._rows]

    def subset(self, rows: Iterable[int]) -> PackedDataset:
        """Some of this dataset's images, in the order given."""
        chosen = (self._row(row) for row in rows)
        return PackedDataset(self.path, chosen)

    def close(self) -> None:
        """Lets go of the file; the next read opens it again."""
        if self._file is not None:
            self._file.close()
        self._file, self._pixel_data = None, {}

    def __enter__(self) -> PackedDataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None, "_pixel_data": {}, "_lists": None, "_known": None}

    def _row(self, index: int) -> int:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"{self.path} has {len(self):,} images, not one at {index}")
        place %= len(self)
        return place if self._rows is None else int(self._rows[place])

    def _open(self) -> Any:
        if self._file is not None and self._process != os.getpid():
            # A forked worker must not share the parent's file position.
            self.close()
        if self._file is None:
            h5py = load_h5py()
            if not self.path.is_file():
                raise DataError(str(self.path), "is not a file", "check the path")
            try:
                self._file = h5py.File(self.path, "r")
            except OSError as error:
                raise self._damaged(f"cannot be opened as HDF5 ({error})") from error
            self._process = os.getpid()
        return self._file

    def _pixels(self, name: str, row: int) -> UInt8Array:
        file = self._open()
        try:
            if name not in self._pixel_data:
                self._pixel_data[name] = file[name]
            pixels: UInt8Array = self._pixel_data[name][row]
        except _DAMAGE as error:
            raise self._damaged(f"{name}[{row}] cannot be read ({error})") from error
        return pixels

    def _load_lists(self) -> dict[str, _Lists]:
        # All at once and kept: they are small beside the images, and HDF5 is slow at single short rows.
        if self._lists is None:
            file = self._open()
            try:
                self._known = file["known"][:]
                self._lists = {path: _Lists(file[path][:], file[f"counts/{path}"][:]) for path in self._header.lists}
            except _DAMAGE as error:
                raise self._damaged(f"the truth cannot be read ({error})") from error
        return self._lists

    def _read_header(self) -> _Header:
        file = self._open()
        try:
            if file.attrs.get("format") != FORMAT:
                fix = "give a file that 'tusk data make' or a conversion wrote"
                raise DataError(str(self.path), "is HDF5, but not a packed dataset of tusk", fix)
            version = int(file.attrs["version"])
            if version > VERSION:
                why = f"is packed in version {version}; this tusk reads up to {VERSION}"
                raise DataError(str(self.path), why, "update tusk, or make the file again with this one")
            return self._checked_header(file)
        except _DAMAGE as error:
            raise self._damaged(f"is not laid out as a packed dataset ({error})") from error

    def _checked_header(self, file: Any) -> _Header:
        count, height, width, channels = file["images"].shape
        attributes = tuple(file["attributes"]) if "attributes" in file else ()
        lists = [path for path in ("points", "boxes", "classes") if path in file]
        lists += [f"attributes/{name}" for name in attributes]
        shapes = {"images": (height, width, channels), "masks": (height, width), "known": ()}
        for path in ("images", "masks", "known"):
            if path in file or path != "masks":
                self._check(path, file[path].shape == (count, *shapes[path]) and channels == 3)
                self._check(path, file[path].dtype == (np.bool_ if path == "known" else np.uint8))
        for path in lists:
            tail = {"points": (2,), "boxes": (4,)}.get(path, ())
            self._check(path, file[path].shape[:1] + file[path].shape[2:] == (count, *tail))
            self._check(path, file[f"counts/{path}"].shape == (count,))
        return _Header(
            name=str(file.attrs["dataset"]),
            class_names=tuple(json.loads(file.attrs["class_names"])),
            provenance=Provenance.from_json(file.attrs["provenance"]),
            shape=(count, height, width),
            has_masks="masks" in file,
            lists=tuple(lists),
            attribute_names=tuple(
                (name, tuple(json.loads(file[f"attributes/{name}"].attrs["names"]))) for name in attributes
            ),
        )

    def _check(self, path: str, fits: bool) -> None:
        if not fits:
            raise ValueError(f"{path} has the wrong shape or type")

    def _damaged(self, why: str) -> DataError:
        return DataError(str(self.path), why, "make it again, or fetch it again")
