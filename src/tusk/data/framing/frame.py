"""How pictures come before the network: the rule (`Framing`), and a picture in use that follows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.config import DataConfig
from tusk.config.data import Contrast, Fit
from tusk.data.dataset import UInt8Array
from tusk.data.flat_field import GREY, flatten_background
from tusk.data.framing.placement import Placement, place, place_tiles
from tusk.data.images import Picture
from tusk.data.tones import to_full_contrast

# Where training cuts squares out of its pictures, a longer picture stays whole in use, as a longer image; but no longer
# than this many squares, so that a thin strip does not become endless.
_LONGEST = 4


@dataclass(frozen=True)
class Frame:
    """The image that the network sees, and where in it the picture lies."""

    height: int
    width: int
    placement: Placement


@dataclass(frozen=True)
class Framing:
    """How a picture of any size comes to the network's size and tones, in training (`places`) and in use (`frame`).

    Both put the same pixels before the network, but for one thing: where training takes a square out of a longer
    picture, use keeps all of it, at the same scale (up to `_LONGEST` squares). So the square lies within the frame.
    """

    size: int
    fit: Fit = "centre-crop"
    scale: float = 1.0  # of pictures that are cut into tiles
    contrast: Contrast = "own"
    grey: bool = False

    @staticmethod
    def of(data: DataConfig) -> Framing:
        return Framing(data.size, data.fit, data.scale, data.contrast, data.grey)

    @property
    def smallest_side(self) -> int | None:
        """How small a picture may be decoded: twice the size leaves the resampling enough to average over."""
        return None if self.fit == "tiles" else 2 * self.size

    def places(self, width: int, height: int, rng: np.random.Generator) -> list[Placement]:
        """Training: one square, or the tiles that cover the picture."""
        if self.fit == "tiles":
            return place_tiles(width, height, self.size, self.scale)
        return [place(width, height, self.size, self.fit, rng)]

    def frame(self, width: int, height: int, least: int) -> Frame:
        """Use: all of the picture; no side of the frame is shorter than `least`, nor than a tile where it is tiled."""
        size = self.size
        if self.fit in ("letterbox", "pad"):
            return Frame(size, size, place(width, height, size, self.fit, np.random.default_rng(0)))
        scale = min(size / min(width, height), _LONGEST * size / max(width, height))
        if self.fit == "tiles":
            scale, least = self.scale, size
        columns, rows = (max(1, round(side * scale)) for side in (width, height))
        wide, high = max(columns, least), max(rows, least)
        place_in = Placement(0, 0, width, height, (wide - columns) // 2, (high - rows) // 2, columns, rows)
        return Frame(high, wide, place_in)

    def render(
        self, picture: Picture, placements: Sequence[Placement], shape: tuple[int, int] | None = None
    ) -> list[UInt8Array]:
        """An image (height, width, 3), or (height, width, 1) if grey, for each place; `shape` is (size, size) if None.

        Full contrast is that of the whole picture. Every pixel is resampled once, from the picture's own.
        """
        pixels, bars = picture.pixels, 0
        if self.contrast == "full":
            pixels = to_full_contrast(pixels)
        elif self.contrast == "flat":
            pixels, bars = flatten_background(pixels), GREY
        shape = shape or (self.size, self.size)
        height, width = pixels.shape[:2]
        if len(placements) == 1 and not self.grey and shape == (height, width):
            one = placements[0]
            box = picture.box(one.left, one.top, one.width, one.height)
            if list(box) == [0, 0, width, height] and (one.column, one.row, one.columns, one.rows) == (
                0,
                0,
                width,
                height,
            ):
                return [pixels]  # it has the size already
        whole = Image.fromarray(pixels)  # a copy: once, however many tiles are cut out of it
        images: list[UInt8Array] = []
        for one in placements:
            box = picture.box(one.left, one.top, one.width, one.height)
            part = whole.resize((one.columns, one.rows), Image.Resampling.BICUBIC, box=box)
            values = np.asarray(part.convert("L"))[:, :, None] if self.grey else np.asarray(part)
            images.append(laid_out(values, one, shape, bars))
        return images


def laid_out(values: UInt8Array, placement: Placement, shape: tuple[int, int], bars: int = 0) -> UInt8Array:
    """values (rows, columns, ...) at their place in an image of `shape` (height, width), otherwise of one grey."""
    canvas = np.full((*shape, *values.shape[2:]), bars, np.uint8)
    row, column = placement.row, placement.column
    canvas[row : row + placement.rows, column : column + placement.columns] = values
    return canvas


def in_three(pixels: UInt8Array) -> UInt8Array:
    """(H, W, 1) or (H, W, 3) -> (H, W, 3)."""
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


@dataclass(frozen=True, eq=False)
class FittedPicture:
    """A picture ready for the network, with the way back to its own pixels."""

    source: str
    original_width: int
    original_height: int
    frame: Frame
    pixels: UInt8Array  # (frame.height, frame.width, 3)

    def to_original(self, xy: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """xy (N, 2) in the frame -> the same in the picture, and which of them (N,) are in it at all.

        A point in the bars around the picture is not. One in the outer half of an edge pixel is, and is moved to its
        centre, so that every point is inside for whoever looks it up.
        """
        places, width, height = self.frame.placement.to_original(xy), self.original_width, self.original_height
        inside = np.asarray(((places > -0.5) & (places < (width - 0.5, height - 0.5))).all(1))
        return np.clip(places, 0, (width - 1, height - 1)), inside


def frame_for(width: int, height: int, data: DataConfig, least: int) -> Frame:
    """The frame in use for a picture of that size; no side of it is shorter than `least`."""
    return Framing.of(data).frame(width, height, least)


def fit_picture(picture: Picture, source: str, data: DataConfig, least: int) -> FittedPicture:
    """A picture in use, framed as in training."""
    framing, width, height = Framing.of(data), picture.original_width, picture.original_height
    frame = framing.frame(width, height, least)
    (pixels,) = framing.render(picture, [frame.placement], (frame.height, frame.width))
    return FittedPicture(source, width, height, frame, in_three(pixels))
