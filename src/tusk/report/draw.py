"""Drawing for pages: colours, score maps, reconstructions, crops."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor

FloatArray = npt.NDArray[np.floating]
UInt8Array = npt.NDArray[np.uint8]

_HEAT = ((6, 4, 14), (52, 16, 88), (130, 30, 104), (206, 62, 70), (246, 128, 38), (252, 202, 74), (255, 250, 206))
_LARGEST, _LOSSLESS = 320, 128  # sides in pixels of pictures in a page


def colour_names(names: Sequence[str]) -> list[tuple[int, int, int]] | None:
    """The colours that the names stand for; None where one of them is no colour's name."""
    colours = [ImageColor.getrgb(name) for name in names if name.lower() in ImageColor.colormap]
    return [(red, green, blue) for red, green, blue, *_ in colours] if names and len(colours) == len(names) else None


def to_bytes(image: FloatArray) -> UInt8Array:
    """(3, H, W) in [0, 1] -> (H, W, 3) uint8."""
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0)


def css(colour: tuple[int, int, int]) -> str:
    """The colour as a style sheet writes it."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def draw_score(score_map: FloatArray) -> UInt8Array:
    """(H, W) in [0, 1] -> (H, W, 3) from black over violet and orange to pale yellow, ever lighter."""
    places = np.linspace(0, 1, len(_HEAT))
    values = np.clip(score_map, 0, 1)
    channels = [np.interp(values, places, [colour[channel] for colour in _HEAT]) for channel in range(3)]
    return (np.stack(channels, -1) + 0.5).astype(np.uint8)


def crop(image: UInt8Array, x: float, y: float, side: int) -> UInt8Array:
    """The `side` x `side` pixels around a point; black where they lie outside."""
    padded = np.pad(image, ((side, side), (side, side), (0, 0)))
    left, top = round(x - side / 2 + 0.5) + side, round(y - side / 2 + 0.5) + side
    return padded[max(top, 0) : top + side, max(left, 0) : left + side]


def picture_uri(pixels: UInt8Array) -> str:
    """(H, W, 3 or 4) as text inside a page; large pictures are made smaller and lossy."""
    picture = Image.fromarray(pixels)
    if max(picture.size) > _LARGEST:
        picture.thumbnail((_LARGEST, _LARGEST))
    buffer = io.BytesIO()
    if max(picture.size) > _LOSSLESS and picture.mode == "RGB":
        picture.save(buffer, "JPEG", quality=88)
        return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
