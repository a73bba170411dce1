"""Detections drawn into their picture: points coloured and numbered by type, masks tinted."""

from __future__ import annotations

import colorsys
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from tusk.data.images import Picture, read_picture
from tusk.detection.detections import Detections
from tusk.errors import UsageError

if TYPE_CHECKING:
    from tusk.detection.inputs import OneImage

UInt8Array = npt.NDArray[np.uint8]

# Red, blue, green, amber, violet, cyan, pink, lime, brown, teal, yellow, slate.
_NAMED = (
    (239, 68, 68), (56, 116, 255), (34, 180, 85), (245, 150, 20), (155, 89, 245), (30, 200, 225),
    (244, 114, 190), (163, 205, 30), (178, 118, 62), (20, 150, 136), (250, 212, 70), (132, 146, 176),
)  # fmt: skip
_SHORTEST, _LONGEST = 400, 1600  # sides in pixels at which dots and numbers can be read


def type_colours(count: int) -> list[tuple[int, int, int]]:
    """As many bright colours: a dozen that are easy to name, then steps of the golden ratio around the hues."""
    colours = list(_NAMED[:count])
    for number in range(len(colours), count):
        lightness = 0.62 if number % 2 == 0 else 0.5
        red, green, blue = colorsys.hls_to_rgb((number * 0.618034) % 1, lightness, 0.85)
        colours.append((round(red * 255), round(green * 255), round(blue * 255)))
    return colours


def enlarged(image: UInt8Array, factor: int) -> Image.Image:
    """(H, W, 3) with every pixel as a square of `factor` pixels, so that nothing is invented."""
    height, width = image.shape[:2]
    return Image.fromarray(image).resize((width * factor, height * factor), Image.Resampling.NEAREST)


def draw_points(
    image: UInt8Array,
    xy: npt.NDArray[np.floating],
    labels: npt.NDArray[np.integer],
    types: int,
    factor: int = 3,
) -> Image.Image:
    """(H, W, 3) enlarged, with a dot and the type's number at each point (K, 2)."""
    canvas = enlarged(image, factor).convert("RGB")
    draw = ImageDraw.Draw(canvas)
    colours = type_colours(types)
    font_size = max(10, 6 * factor)
    font = ImageFont.load_default(font_size)
    for (x, y), label in zip(xy, labels, strict=True):
        # The centre of pixel x lies at (x + 0.5) * factor of the enlarged picture.
        u, v = (float(x) + 0.5) * factor, (float(y) + 0.5) * factor
        colour = colours[int(label)]
        reach = max(3, 1.5 * factor)
        draw.ellipse((u - reach, v - reach, u + reach, v + reach), fill=colour, outline=(0, 0, 0), width=2)
        place = (u + reach + 2, v - reach - font_size / 2)
        draw.text(place, str(int(label)), font=font, fill=colour, stroke_width=3, stroke_fill=(0, 0, 0))
    return canvas


def draw_detections(image: OneImage, found: Detections) -> Image.Image:
    """The picture with dots, numbers and masks; enlarged by a whole factor if it is small, shrunk if it is large."""
    from tusk.detection.inputs import to_picture  # it needs torch, and contact sheets do not

    picture, name = to_picture(image, 0, min(_LONGEST, found.width, found.height))
    if (picture.original_width, picture.original_height) != (found.width, found.height):
        why = f"it is {picture.original_width} x {picture.original_height} pixels, the detections are of "
        raise UsageError(name, f"{why}{found.width} x {found.height}", "give the picture that they were found in")
    return _drawn(picture, found)


def overlay_png(path: Path, found: Detections) -> bytes:
    """The same for a file, as the bytes of a PNG."""
    buffer = io.BytesIO()
    _drawn(read_picture(path, smallest_side=min(_LONGEST, found.width, found.height)), found).save(buffer, "PNG")
    return buffer.getvalue()


def _drawn(picture: Picture, found: Detections) -> Image.Image:
    shrink = max(1.0, max(found.width, found.height) / _LONGEST)
    width, height = (max(1, round(side / shrink)) for side in (found.width, found.height))
    box = picture.box(0, 0, found.width, found.height)
    pixels = np.array(Image.fromarray(picture.pixels).resize((width, height), Image.Resampling.BICUBIC, box=box))
    types = 1 + int(found.type.max(initial=0))
    if found.mask_map is not None:
        _tint(pixels, found, types)
    factor = min(8, max(1, -(-_SHORTEST // max(width, height))))
    scale = np.array([width / found.width, height / found.height])
    return draw_points(pixels, (found.xy + 0.5) * scale - 0.5, found.type, types, factor)


def _tint(pixels: UInt8Array, found: Detections, types: int) -> None:
    """Half of each masked pixel becomes the colour of its object's type."""
    assert found.mask_map is not None
    height, width = pixels.shape[:2]
    rows, columns = (np.arange(height) * found.height // height, np.arange(width) * found.width // width)
    shown = found.mask_map[rows[:, None], columns]  # (height, width)
    colours = np.array(type_colours(types), np.uint8)
    for instance, number in zip(found.instance, found.type, strict=True):
        where = shown == instance + 1
        pixels[where] = pixels[where] // 2 + colours[number] // 2
