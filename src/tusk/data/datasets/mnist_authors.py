"""MNIST-Hard as its authors released it: pictures, and beside them three files per split.

{split}.txt            one picture's path per line
{split}_labels.txt     the labels of that picture's digits, on the same line
{split}_keypoints.npy  (pictures, digits, 3): x, y and radius of every digit, in pixels
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Float32Array, Int64Array, Truth, UInt8Array
from tusk.data.images import read_image
from tusk.data.synthetic.canvases import Split, check_split
from tusk.errors import DataError

_TOGETHER = "use the three files that were released together"


class MnistHardReleased:
    """`mnist-hard` from a folder in the authors' layout; a `Dataset`."""

    def __init__(self, folder: Path, *, split: Split) -> None:
        check_split(split)
        self.folder, self.split = folder.absolute(), split
        paths_file = self.folder / f"{split}.txt"
        labels_file = self.folder / f"{split}_labels.txt"
        keypoints_file = self.folder / f"{split}_keypoints.npy"
        lines = _lines(paths_file)
        self._keypoints = _read_keypoints(keypoints_file)
        self._labels = _read_labels(labels_file, digits=self._keypoints.shape[1])
        for file, count in ((labels_file, len(self._labels)), (keypoints_file, len(self._keypoints))):
            if count != len(lines):
                raise DataError(str(file), f"has {count} entries for {len(lines)} pictures", _TOGETHER)
        self._paths = _locate(paths_file, lines)

    @property
    def name(self) -> str:
        return "mnist-hard"

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple("0123456789")

    def __len__(self) -> int:
        return len(self._paths)

    def image(self, index: int) -> UInt8Array:
        return read_image(self.picture_file(index))

    def picture_file(self, index: int) -> Path:
        self._check(index)
        return self._paths[index]

    def truth(self, index: int) -> Truth:
        self._check(index)
        points, radii = self._keypoints[index, :, :2], self._keypoints[index, :, 2:]  # (9, 2), (9, 1)
        boxes = np.concatenate([points - radii, points + radii], axis=1)
        return Truth(points.copy(), boxes, self._labels[index].copy())

    def _check(self, index: int) -> None:
        # Not Python's counting from the end: index -1 is a mistake in every dataset.
        if not 0 <= index < len(self):
            raise IndexError(f"picture {index} of {len(self)}")


def is_released_layout(folder: Path) -> bool:
    """Whether the folder holds the authors' files rather than MNIST itself."""
    return any((folder / f"{split}_keypoints.npy").is_file() for split in ("train", "test"))


def _lines(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(file), f"cannot be read ({error})", "give a folder in the authors' layout") from error
    lines = [line for line in lines if line]
    if not lines:
        raise DataError(str(file), "is empty", _TOGETHER)
    return lines


def _read_labels(file: Path, *, digits: int) -> Int64Array:
    """(pictures, digits); the labels of a line may stand between spaces, tabs, commas or semicolons, or in brackets."""
    rows: list[list[int]] = []
    for number, line in enumerate(_lines(file), start=1):
        words = re.split(r"[\s,;]+", line.strip("[](),; \t"))
        # Written by numpy.savetxt, whole numbers look like 3.000e+00.
        values = [float(word) if re.fullmatch(r"\d+(\.\d*)?(e[+-]?\d{1,2})?", word) else -1.0 for word in words]
        if any(value not in range(10) for value in values):
            raise DataError(f"{file}, line {number}", f"'{line[:60]}' is not a list of digits", _TOGETHER)
        if len(values) != digits:
            raise DataError(f"{file}, line {number}", f"has {len(values)} labels for {digits} keypoints", _TOGETHER)
        rows.append([int(value) for value in values])
    return np.array(rows, dtype=np.int64)


def _read_keypoints(file: Path) -> Float32Array:
    """(pictures, digits, 3)."""
    try:
        # Never with pickles allowed: a pickle runs whatever it likes.
        values: npt.NDArray[np.generic] = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise DataError(str(file), f"cannot be read as an array of numbers ({reason})", _TOGETHER) from error
    if not np.issubdtype(values.dtype, np.integer) and not np.issubdtype(values.dtype, np.floating):
        raise DataError(str(file), f"holds {values.dtype}, not real numbers", _TOGETHER)
    if values.ndim != 3 or values.shape[1] == 0 or values.shape[2] != 3:
        raise DataError(str(file), f"has the shape {values.shape}, not (pictures, digits, 3)", _TOGETHER)
    keypoints = values.astype(np.float32)
    if not np.isfinite(keypoints).all() or (keypoints[..., 2] <= 0).any():
        raise DataError(str(file), "has a keypoint that is not finite, or a radius that is not positive", _TOGETHER)
    return keypoints


def _locate(file: Path, lines: list[str]) -> list[Path]:
    """The pictures' paths as they are here, all of them inside the folder of the list.

    The list may name paths of the machine on which it was written. What has to be cut off in front is found with the
    first picture, looked for from the longest remainder to the bare name, and holds for all. No line can lead out of
    the folder: one with '..' in it, or one that is still absolute after the cut, is refused.
    """
    paths = [PurePosixPath(line.replace("\\", "/")) for line in lines]
    for number, path in enumerate(paths, start=1):
        if ".." in path.parts:
            raise _outside(file, number, lines[number - 1])
    first = paths[0]
    for cut in range(1 if first.is_absolute() else 0, len(first.parts)):
        if file.parent.joinpath(*first.parts[cut:]).is_file():
            return [file.parent.joinpath(*_rest(file, number, path, cut)) for number, path in enumerate(paths, start=1)]
    if first.is_absolute():
        raise _outside(file, 1, lines[0])
    raise DataError(f"{file}, line 1", f"names '{lines[0]}', which is not there", "put the pictures beside the lists")


def _rest(file: Path, number: int, path: PurePosixPath, cut: int) -> tuple[str, ...]:
    """What is left of a path; an anchor such as / or C: may only be in what is cut off."""
    rest = path.parts[min(cut, len(path.parts) - 1) :]
    if not rest or any("/" in part or ":" in part for part in rest):
        raise _outside(file, number, str(path))
    return rest


def _outside(file: Path, number: int, line: str) -> DataError:
    why = f"names the file '{line}', which is not inside of the folder"
    return DataError(f"{file}, line {number}", why, "put the pictures beside the lists")
