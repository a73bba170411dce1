"""A dataset at another size: scaled, or set in the middle of a larger black square, truth and all."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.data.dataset import Dataset, Float32Array, Truth, UInt8Array
from tusk.errors import UsageError

Float64Array = npt.NDArray[np.float64]


class Fitted:
    """Every image of a dataset as (size, size, 3).

    `scale` resamples smoothly (masks by the nearest pixel); `pad` leaves the pixels as they are and puts black around
    them, for small images whose pixels matter.
    """

    def __init__(self, dataset: Dataset, size: int, how: Literal["scale", "pad"] = "scale") -> None:
        self._dataset, self._size, self._how = dataset, size, how

    @property
    def name(self) -> str:
        return self._dataset.name

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._dataset.class_names

    def __len__(self) -> int:
        return len(self._dataset)

    def image(self, index: int) -> UInt8Array:
        pixels = self._dataset.image(index)
        if self._how == "pad":
            return self._padded(pixels)
        return np.asarray(Image.fromarray(pixels).resize((self._size, self._size), Image.Resampling.BICUBIC))

    def truth(self, index: int) -> Truth | None:
        truth = self._dataset.truth(index)
        if truth is None:
            return None
        height, width = self._dataset.image(index).shape[:2]
        if self._how == "pad":
            scale = np.ones(2)
            offset = np.array([(self._size - width) // 2, (self._size - height) // 2], np.float64)
        else:
            scale = np.array([self._size / width, self._size / height])
            offset = scale * 0.5 - 0.5  # pixel centres, not corners, are at whole numbers
        return replace(
            truth,
            points=None if truth.points is None else _moved(truth.points, scale, offset),
            boxes=None if truth.boxes is None else _moved(truth.boxes, np.tile(scale, 2), np.tile(offset, 2)),
            mask=None if truth.mask is None else self._fitted_mask(truth.mask),
        )

    def _fitted_mask(self, mask: UInt8Array) -> UInt8Array:
        if self._how == "pad":
            return self._padded(mask)
        return np.asarray(Image.fromarray(mask).resize((self._size, self._size), Image.Resampling.NEAREST))

    def _padded(self, pixels: UInt8Array) -> UInt8Array:
        height, width = pixels.shape[:2]
        if max(height, width) > self._size:
            raise UsageError(
                "data.size",
                f"images of {width}x{height} do not fit in {self._size} pixels without scaling",
                f"give at least {max(height, width)}, or another data.fit",
            )
        top, left = (self._size - height) // 2, (self._size - width) // 2
        canvas = np.zeros((self._size, self._size, *pixels.shape[2:]), np.uint8)
        canvas[top : top + height, left : left + width] = pixels
        return canvas


def _moved(places: Float32Array, scale: Float64Array, offset: Float64Array) -> Float32Array:
    return (places * scale + offset).astype(np.float32)
