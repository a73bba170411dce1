"""A picture with what was found in it: points and their types, and masks where there are any."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from tusk.data.images import read_picture
from tusk.detection.detections import Detections
from tusk.report.draw import draw_points, type_colours

_SHORTEST, _LONGEST = 400, 1600  # sides in pixels at which dots and numbers can be seen


def overlay(path: Path, found: Detections, types: int) -> bytes:
    """A PNG of the picture, enlarged by a whole factor if it is small, shrunk if it is large."""
    picture = read_picture(path, smallest_side=min(_LONGEST, found.width, found.height))
    shrink = max(1.0, max(found.width, found.height) / _LONGEST)
    width, height = (max(1, round(side / shrink)) for side in (found.width, found.height))
    box = picture.box(0, 0, found.width, found.height)
    pixels = np.array(Image.fromarray(picture.pixels).resize((width, height), Image.Resampling.BICUBIC, box=box))
    scale = np.array([width / found.width, height / found.height])
    xy = (found.xy + 0.5) * scale - 0.5
    if found.mask_map is not None:
        _tint(pixels, found, types)
    factor = min(8, max(1, -(-_SHORTEST // max(width, height))))
    buffer = io.BytesIO()
    draw_points(pixels, xy, found.type, types, factor).save(buffer, "PNG")
    return buffer.getvalue()


def _tint(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], found: Detections, types: int) -> None:
    """Half of each masked pixel becomes the colour of its thing's type."""
    assert found.mask_map is not None
    height, width = pixels.shape[:2]
    rows, columns = (np.arange(height) * found.height // height, np.arange(width) * found.width // width)
    shown = found.mask_map[rows[:, None], columns]  # (height, width)
    colours = np.array(type_colours(types), np.uint8)
    for instance, kind in zip(found.instance, found.type, strict=True):
        where = shown == instance + 1
        pixels[where] = pixels[where] // 2 + colours[kind] // 2
