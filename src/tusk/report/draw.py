"""Drawing what the network sees: points coloured by type, score maps, reconstructions, crops."""

from __future__ import annotations

import base64
import colorsys
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor, ImageDraw, ImageFont

FloatArray = npt.NDArray[np.floating]
UInt8Array = npt.NDArray[np.uint8]

# Red, blue, green, amber, violet, cyan, pink, lime, brown, teal, yellow, slate.
_NAMED = (
    (239, 68, 68), (56, 116, 255), (34, 180, 85), (245, 150, 20), (155, 89, 245), (30, 200, 225),
    (244, 114, 190), (163, 205, 30), (178, 118, 62), (20, 150, 136), (250, 212, 70), (132, 146, 176),
)  # fmt: skip
_HEAT = ((6, 4, 14), (52, 16, 88), (130, 30, 104), (206, 62, 70), (246, 128, 38), (252, 202, 74), (255, 250, 206))
_LARGEST, _LOSSLESS = 320, 128  # sides in pixels of pictures in a page


def type_colours(count: int) -> list[tuple[int, int, int]]:
    """As many bright colours: a dozen that are easy to name, then steps of the golden ratio around the hues."""
    colours = list(_NAMED[:count])
    for number in range(len(colours), count):
        lightness = 0.62 if number % 2 == 0 else 0.5
        red, green, blue = colorsys.hls_to_rgb((number * 0.618034) % 1, lightness, 0.85)
        colours.append((round(red * 255), round(green * 255), round(blue * 255)))
    return colours


def colour_names(names: Sequence[str]) -> list[tuple[int, int, int]] | None:
    """The colours that the names stand for; None where one of them is no colour's name."""
    colours = [ImageColor.getrgb(name) for name in names if name.lower() in ImageColor.colormap]
    return [(red, green, blue) for red, green, blue, *_ in colours] if names and len(colours) == len(names) else None


def to_bytes(image: FloatArray) -> UInt8Array:
    """(3, H, W) in [0, 1] -> (H, W, 3) uint8."""
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0)


def enlarged(image: UInt8Array, factor: int) -> Image.Image:
    """(H, W, 3) with every pixel as a square of `factor` pixels, so that nothing is invented."""
    height, width = image.shape[:2]
    return Image.fromarray(image).resize((width * factor, height * factor), Image.Resampling.NEAREST)


def draw_points(
    image: UInt8Array, xy: FloatArray, labels: npt.NDArray[np.integer], types: int, factor: int = 3
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
    """(H, W, 3 or 4) as text that stands in a page by itself; large pictures are made smaller and lossy."""
    picture = Image.fromarray(pixels)
    if max(picture.size) > _LARGEST:
        picture.thumbnail((_LARGEST, _LARGEST))
    buffer = io.BytesIO()
    if max(picture.size) > _LOSSLESS and picture.mode == "RGB":
        picture.save(buffer, "JPEG", quality=88)
        return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
