"""How a picture of any size comes before the network: at the scale it was trained at, and nothing of it lost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tusk.config import DataConfig
from tusk.data.dataset import UInt8Array
from tusk.data.framing import Placement, place, render
from tusk.data.images import Picture
from tusk.data.tones import to_full_contrast

# Where training cut squares out of its pictures, a longer picture is seen whole, as a longer image; but no longer than
# this many squares, so that a thin strip does not become endless.
_LONGEST = 4
_PACKED = (".h5", ".hdf5")


@dataclass(frozen=True)
class Frame:
    """The image that the network sees, and where in it the picture lies."""

    height: int
    width: int
    placement: Placement


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
    """The frame for a picture of that size; no side of it is shorter than `least`.

    letterbox: as in training, all of the picture in a square with black bars. pad: unscaled in a black square if it
    fits, as in training, else as letterbox. centre-crop and random-crop: the shorter side is scaled as in training,
    and what training would have cut off stays. pieces: at training's scale, and no side shorter than a piece.
    """
    size = data.size
    if data.fit == "tiles":
        return _centred(width, height, data.scale, size)
    if _unscaled(data) and max(width, height) <= size:
        placement = Placement(0, 0, width, height, (size - width) // 2, (size - height) // 2, width, height)
        return Frame(size, size, placement)
    if data.fit in ("letterbox", "pad"):
        return Frame(size, size, place(width, height, size, "letterbox", np.random.default_rng(0)))
    return _centred(width, height, min(size / min(width, height), _LONGEST * size / max(width, height)), least)


def _centred(width: int, height: int, scale: float, least: int) -> Frame:
    columns, rows = (max(1, round(side * scale)) for side in (width, height))
    wide, high = max(columns, least), max(rows, least)
    return Frame(high, wide, Placement(0, 0, width, height, (wide - columns) // 2, (high - rows) // 2, columns, rows))


def _unscaled(data: DataConfig) -> bool:
    """A folder of pictures is letterboxed in training even where `pad` is asked for: its pictures vary in size."""
    packed = data.source is not None and data.source.suffix in _PACKED
    return data.fit == "pad" and (data.dataset != "folder" or packed)


def fit_picture(picture: Picture, source: str, data: DataConfig, least: int) -> FittedPicture:
    """Resampled once, from the picture's own pixels to the network's."""
    if data.contrast == "full":
        picture = replace(picture, pixels=to_full_contrast(picture.pixels))
    frame = frame_for(picture.original_width, picture.original_height, data, least)
    pixels = render(picture, frame.placement, (frame.height, frame.width), data.grey)
    if data.grey:
        pixels = np.repeat(pixels, 3, axis=2)
    return FittedPicture(source, picture.original_width, picture.original_height, frame, pixels)
