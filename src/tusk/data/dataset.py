"""What every dataset gives: an image and, for evaluation only, the truth about it.

Training sees images alone. `Truth` is read by evaluation and reports, never by a loss or by model selection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

UInt8Array = npt.NDArray[np.uint8]
Float32Array = npt.NDArray[np.float32]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Attribute:
    """One property of every object, as an index into its possible names."""

    values: Int64Array  # (N,), each in 0..len(names)-1
    names: tuple[str, ...]  # e.g. ("cube", "sphere", "cylinder")


@dataclass(frozen=True)
class Truth:
    """What is known about the N things in one image; a field is None where a dataset does not say.

    Points are (x, y) in pixels of the image as the dataset gives it; (0, 0) is the centre of the top-left pixel.
    """

    points: Float32Array | None = None  # (N, 2) x, y; NaN where a point is not visible
    boxes: Float32Array | None = None  # (N, 4) x, y of the top-left corner, then x, y of the bottom-right
    classes: Int64Array | None = None  # (N,)
    mask: UInt8Array | None = None  # (H, W): 0 background, i = thing i-1
    attributes: dict[str, Attribute] = field(default_factory=dict)


@runtime_checkable
class Dataset(Protocol):
    """A finite, indexable set of images. `image(i)` depends on `i` alone, so that workers and resumes agree."""

    @property
    def name(self) -> str: ...

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes in `Truth.classes`, or of the landmarks in `Truth.points`; empty where none."""
        ...

    def __len__(self) -> int: ...

    def image(self, index: int) -> UInt8Array:
        """(H, W, 3), uint8, RGB."""
        ...

    def truth(self, index: int) -> Truth | None:
        """The truth about image `index`, or None where nothing is known."""
        ...
