"""Where a picture lies in the square image that a network sees, and the way back to the picture's own pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Whole = Literal["letterbox", "centre-crop", "random-crop", "pad"]  # a picture becomes one image


@dataclass(frozen=True)
class Placement:
    """Which rectangle of the original picture fills which rectangle of the network's image; the rest is black."""

    left: float  # of the original, in its pixels, from its top-left corner
    top: float
    width: float
    height: float
    column: int  # of the image
    row: int
    columns: int
    rows: int

    @property
    def scale(self) -> tuple[float, float]:
        """Original pixels per network pixel, in x and y."""
        return self.width / self.columns, self.height / self.rows

    @property
    def offset(self) -> tuple[float, float]:
        """Where the network's (0, 0) lies in the original: original = scale * point + offset."""
        scale_x, scale_y = self.scale
        return self.left + (0.5 - self.column) * scale_x - 0.5, self.top + (0.5 - self.row) * scale_y - 0.5

    def to_original(self, points: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(..., 2) x, y in the network's image -> x, y in the original picture as it is seen upright."""
        original: npt.NDArray[np.float64] = np.asarray(points, np.float64) * self.scale + self.offset
        return original

    def to_network(self, points: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(..., 2) x, y in the original -> x, y in the network's image."""
        inside: npt.NDArray[np.float64] = (np.asarray(points, np.float64) - self.offset) / self.scale
        return inside


def place(width: int, height: int, size: int, fit: Whole, rng: np.random.Generator) -> Placement:
    """Where a picture of that size goes in a square image.

    letterbox: all of it, with black bars; pad: the same, but unscaled where it fits; centre-crop: the largest square in
    its middle; random-crop: such a square at a place that `rng` gives. Crops start at whole pixels, so that a picture
    that needs no scaling is not blurred.
    """
    if fit in ("letterbox", "pad"):
        longest = max(width, height) if fit == "letterbox" else max(width, height, size)
        columns, rows = (max(1, round(side * size / longest)) for side in (width, height))
        return Placement(0, 0, width, height, (size - columns) // 2, (size - rows) // 2, columns, rows)
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    if fit == "random-crop":
        left, top = int(rng.integers(width - side + 1)), int(rng.integers(height - side + 1))
    return Placement(left, top, side, side, 0, 0, size, size)


def place_tiles(width: int, height: int, size: int, scale: float = 1.0) -> list[Placement]:
    """Tiles, row by row, that cover a picture of that size, itself scaled by `scale`.

    They overlap evenly, by as little as it takes. Where a side of the picture is shorter than a tile, there is one in
    that direction, with black bars. Like crops, they start at whole pixels.
    """
    across, down = (_stretches(side, size, scale) for side in (width, height))
    return [
        Placement(left, top, wide, high, column, row, columns, rows)
        for top, high, row, rows in down
        for left, wide, column, columns in across
    ]


def _stretches(side: int, size: int, scale: float) -> list[tuple[float, float, int, int]]:
    """One direction of it: where each tile starts and how long it is in the picture, then the same in the tile."""
    scaled = max(1, round(side * scale))
    if scaled <= size:
        return [(0.0, float(side), (size - scaled) // 2, scaled)]
    number = -(-scaled // size)
    starts = [round(place * (scaled - size) / (number - 1)) for place in range(number)]
    return [(start * side / scaled, size * side / scaled, 0, size) for start in starts]
