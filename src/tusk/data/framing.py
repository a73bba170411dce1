"""Where a picture lies in the square image that a network sees, and the way back to the picture's own pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.data.dataset import UInt8Array
from tusk.data.images import Picture

Whole = Literal["letterbox", "centre-crop", "random-crop"]  # a picture becomes one image
Fit = Literal[Whole, "tiles"]


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


def place_tiles(width: int, height: int, size: int, scale: float = 1.0) -> list[Placement]:
    """Squares, row by row, that cover a picture of that size, itself scaled by `scale`.

    They overlap evenly, by as little as it takes. Where a side of the picture is shorter than a square, there is one in
    that direction, with black bars. Like crops, they start at whole pixels.
    """
    across, down = (_stretches(side, size, scale) for side in (width, height))
    return [
        Placement(left, top, wide, high, column, row, columns, rows)
        for top, high, row, rows in down
        for left, wide, column, columns in across
    ]


def _stretches(side: int, size: int, scale: float) -> list[tuple[float, float, int, int]]:
    """One direction of it: where each square starts and how long it is in the picture, then the same in the square."""
    scaled = max(1, round(side * scale))
    if scaled <= size:
        return [(0.0, float(side), (size - scaled) // 2, scaled)]
    number = -(-scaled // size)
    starts = [round(place * (scaled - size) / (number - 1)) for place in range(number)]
    return [(start * side / scaled, size * side / scaled, 0, size) for start in starts]


def place(width: int, height: int, size: int, fit: Whole, rng: np.random.Generator) -> Placement:
    """Where a picture of that size goes in a square image.

    letterbox: all of it, with black bars; centre-crop: the largest square in its middle; random-crop: such a square
    at a place that `rng` gives. Crops start at whole pixels, so that a picture that needs no scaling is not blurred.
    """
    if fit == "letterbox":
        columns, rows = (max(1, round(side * size / max(width, height))) for side in (width, height))
        return Placement(0, 0, width, height, (size - columns) // 2, (size - rows) // 2, columns, rows)
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    if fit == "random-crop":
        left, top = int(rng.integers(width - side + 1)), int(rng.integers(height - side + 1))
    return Placement(left, top, side, side, 0, 0, size, size)


def render(picture: Picture, placement: Placement, size: int | tuple[int, int], grey: bool) -> UInt8Array:
    """(height, width, 3), or (height, width, 1) if grey: the picture, resampled once, in its place.

    `size` is the side of a square, or (height, width).
    """
    return render_each(picture, [placement], size, grey)[0]


def render_each(
    picture: Picture, placements: Sequence[Placement], size: int | tuple[int, int], grey: bool
) -> list[UInt8Array]:
    """The same for several places."""
    whole = Image.fromarray(picture.pixels)  # a copy: once, however many pieces are cut out of it
    return [_rendered(whole, picture, placement, size, grey) for placement in placements]


def _rendered(
    whole: Image.Image, picture: Picture, placement: Placement, size: int | tuple[int, int], grey: bool
) -> UInt8Array:
    height, width = (size, size) if isinstance(size, int) else size
    box = picture.box(placement.left, placement.top, placement.width, placement.height)
    image = whole.resize((placement.columns, placement.rows), Image.Resampling.BICUBIC, box=box)
    canvas = np.zeros((height, width, 1 if grey else 3), np.uint8)
    pixels = np.asarray(image.convert("L"))[:, :, None] if grey else np.asarray(image)
    rows = slice(placement.row, placement.row + placement.rows)
    columns = slice(placement.column, placement.column + placement.columns)
    canvas[rows, columns] = pixels
    return canvas
