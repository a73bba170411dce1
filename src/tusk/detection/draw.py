"""Detections drawn into their picture: points coloured and numbered by type, masks tinted, the count in a corner."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from tusk.data.images import Picture, read_picture
from tusk.detection.detections import Detections
from tusk.detection.markers import FloatArray, MarkerSizes, emptiest_corner, marker_sizes, place_labels
from tusk.detection.palette import Colour, ink_on, type_colours
from tusk.errors import UsageError

if TYPE_CHECKING:
    from tusk.detection.inputs import OneImage

__all__ = ["draw_detections", "draw_points", "enlarged", "overlay_png", "type_colours"]

UInt8Array = npt.NDArray[np.uint8]

_SHORTEST, _LONGEST = 400, 4096  # sides in pixels: smaller pictures are enlarged, larger ones shrunk
_MOST_TIMES = 16  # that a tiny one is enlarged
_SMOOTH = 4  # shapes are drawn so many times larger, and made smaller, so that their edges are smooth
_PANEL = 0.4  # of the drawing's height at the most


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
    *,
    count: bool = False,
) -> Image.Image:
    """(H, W, 3) enlarged, with a dot and the type's number at each point (K, 2); with `count`, how many in a corner."""
    canvas = enlarged(image, factor).convert("RGB")
    # The centre of pixel x lies at (x + 0.5) * factor of the enlarged picture.
    places = (np.asarray(xy, np.float64).reshape(-1, 2) + 0.5) * factor
    numbers = np.asarray(labels, np.int64)
    width, height = canvas.size
    sizes = marker_sizes(width, height, places)
    pens = {number: _Pen.of(number, type_colours(types)[number], sizes) for number in np.unique(numbers).tolist()}
    panel = _panel(canvas, places, numbers, sizes, pens) if count else None
    if panel is not None:
        panel.shade(canvas)
    for place, number in zip(places, numbers.tolist(), strict=True):
        _stamp(canvas, pens[number].dot, place - pens[number].dot.width / 2)
    fields = np.array([pens[number].label.size for number in numbers.tolist()], float).reshape(-1, 2)
    taken = None if panel is None else np.array([panel.box])
    corners = place_labels(places, fields, width, height, sizes.dot, taken)
    for corner, number in zip(corners, numbers.tolist(), strict=True):
        _stamp(canvas, pens[number].label, corner)
    if panel is not None:
        panel.write(canvas)  # over what lies under it: a point is seen through words, not the other way round
    return canvas


@dataclass(frozen=True)
class _Pen:
    """What is stamped for a type: its dot, and its number on a field of its colour."""

    dot: Image.Image  # RGBA
    label: Image.Image

    @staticmethod
    def of(number: int, colour: Colour, sizes: MarkerSizes) -> _Pen:
        return _Pen(_dot(colour, sizes), _label(str(number), colour, sizes))


def _dot(colour: Colour, sizes: MarkerSizes) -> Image.Image:
    """The colour within a white and a black ring: one of them stands out from any picture."""
    side = 2 * round(sizes.dot + 0.5) + 1
    drawn = Image.new("RGBA", (side * _SMOOTH, side * _SMOOTH), (0, 0, 0, 0))
    draw, middle = ImageDraw.Draw(drawn), side * _SMOOTH / 2
    for inset, fill in ((0.0, (0, 0, 0)), (sizes.line / 2, (255, 255, 255)), (sizes.line, colour)):
        reach = max(1.0, sizes.dot - inset) * _SMOOTH
        draw.ellipse((middle - reach, middle - reach, middle + reach, middle + reach), fill=(*fill, 255))
    return drawn.reduce(_SMOOTH)


def _label(words: str, colour: Colour, sizes: MarkerSizes) -> Image.Image:
    font = ImageFont.load_default(max(1.0, sizes.text * _SMOOTH))
    width, height = (max(1, round(side)) for side in sizes.label(len(words)))
    drawn = Image.new("RGBA", (width * _SMOOTH, height * _SMOOTH), (0, 0, 0, 0))
    draw, edge = ImageDraw.Draw(drawn), max(1, round(sizes.line / 2 * _SMOOTH))
    box = (0, 0, width * _SMOOTH - 1, height * _SMOOTH - 1)
    draw.rounded_rectangle(box, sizes.text / 4 * _SMOOTH, fill=(*colour, 255), outline=(0, 0, 0, 255), width=edge)
    middle = (width * _SMOOTH / 2, height * _SMOOTH / 2)
    draw.text(middle, words, font=font, fill=(*ink_on(colour), 255), anchor="mm")
    return drawn.reduce(_SMOOTH)


def _stamp(canvas: Image.Image, drawn: Image.Image, corner: FloatArray) -> None:
    canvas.paste(drawn, (int(np.floor(corner[0] + 0.5)), int(np.floor(corner[1] + 0.5))), drawn)


@dataclass(frozen=True)
class _Panel:
    """The count in a corner: lines of words, some with a type's number before them."""

    box: tuple[float, float, float, float]
    lines: tuple[tuple[Image.Image | None, str], ...]
    step: float
    pad: float
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont

    def shade(self, canvas: Image.Image) -> None:
        left, top, right, bottom = (round(edge) for edge in self.box)
        dark = Image.new("RGBA", (right - left, bottom - top), (0, 0, 0, 175))
        canvas.paste(dark, (left, top), dark)

    def write(self, canvas: Image.Image) -> None:
        draw, left = ImageDraw.Draw(canvas), self.box[0] + self.pad
        for row, (label, words) in enumerate(self.lines):
            level, indent = self.box[1] + self.pad / 2 + (row + 0.5) * self.step, 0.0
            if label is not None:
                _stamp(canvas, label, np.array([left, level - label.height / 2]))
                indent = label.width + self.pad
            draw.text(
                (left + indent, level),
                words,
                font=self.font,
                fill=(255, 255, 255),
                anchor="lm",
                stroke_width=max(1, round(self.step / 20)),
                stroke_fill=(0, 0, 0),
            )


def _panel(
    canvas: Image.Image, xy: FloatArray, numbers: npt.NDArray[np.int64], sizes: MarkerSizes, pens: dict[int, _Pen]
) -> _Panel | None:
    """How many points there are, and of which types, in the corner where that covers fewest of them.

    Where it would cover any, the total alone; None where the drawing has no room for a word.
    """
    font = ImageFont.load_default(max(1.0, sizes.panel))
    step, pad = 1.5 * sizes.panel, 0.4 * sizes.panel
    total: tuple[Image.Image | None, str] = (None, f"{len(numbers):,} found")
    counts = sorted(zip(*np.unique(numbers, return_counts=True), strict=True), key=lambda one: (-one[1], one[0]))
    of_types = [(pens[int(number)].label, f"{count:,}") for number, count in counts]
    fit = int((_PANEL * canvas.height - pad) / step) - 1
    tries = [(total, *of_types)] if 1 < len(of_types) <= fit else []
    for lines in (*tries, (total,)):
        wide = [font.getlength(words) + (0 if label is None else label.width + pad) for label, words in lines]
        box = (max(wide) + 2 * pad, step * len(lines) + pad)
        left, top = emptiest_corner(xy, box, *canvas.size)
        covered = ((xy >= (left, top)) & (xy <= (left + box[0], top + box[1]))).all(1).any()
        if box[0] <= canvas.width and box[1] <= canvas.height and not (covered and len(lines) > 1):
            return _Panel((left, top, left + box[0], top + box[1]), lines, step, pad, font)
    return None


def draw_detections(image: OneImage, found: Detections) -> Image.Image:
    """The picture with dots, numbers, masks and the count; enlarged by a whole factor if small, shrunk if huge."""
    from tusk.detection.inputs import to_picture  # it needs torch, and contact sheets do not

    picture, name = to_picture(image, 0, min(_LONGEST, found.width, found.height))
    if (picture.original_width, picture.original_height) != (found.width, found.height):
        why = f"it is {picture.original_width} x {picture.original_height} pixels, the detections are of "
        raise UsageError(name, f"{why}{found.width} x {found.height}", "give the picture that they were found in")
    return _drawn(picture, found)


def overlay_png(path: Path, found: Detections, frame: int | None = None) -> bytes:
    """The same for a file, or for one of its frames, as the bytes of a PNG."""
    buffer = io.BytesIO()
    picture = read_picture(path, smallest_side=min(_LONGEST, found.width, found.height), frame=frame)
    _drawn(picture, found).save(buffer, "PNG", compress_level=3)  # a third of the time, and hardly larger
    return buffer.getvalue()


def _drawn(picture: Picture, found: Detections) -> Image.Image:
    shrink = max(1.0, max(found.width, found.height) / _LONGEST)
    width, height = (max(1, round(side / shrink)) for side in (found.width, found.height))
    box = picture.box(0, 0, found.width, found.height)
    pixels = np.array(Image.fromarray(picture.pixels).resize((width, height), Image.Resampling.BICUBIC, box=box))
    types = 1 + int(found.type.max(initial=0))
    if found.mask_map is not None:
        _tint(pixels, found, types)
    factor = min(_MOST_TIMES, max(1, -(-_SHORTEST // max(width, height))))
    scale = np.array([width / found.width, height / found.height])
    return draw_points(pixels, (found.xy + 0.5) * scale - 0.5, found.type, types, factor, count=True)


def _tint(pixels: UInt8Array, found: Detections, types: int) -> None:
    """A part of each masked pixel becomes the colour of its object's type, and all of it along the mask's edge."""
    assert found.mask_map is not None
    height, width = pixels.shape[:2]
    rows, columns = (np.arange(height) * found.height // height, np.arange(width) * found.width // width)
    shown = found.mask_map[rows[:, None], columns]  # (height, width)
    colours = np.zeros((int(max(shown.max(initial=0), found.instance.max(initial=0) + 1)) + 1, 3), np.uint8)
    colours[found.instance + 1] = np.array(type_colours(types), np.uint8)[found.type]
    known = np.zeros(len(colours), np.bool_)
    known[found.instance + 1] = True
    inside = known[shown]
    pixels[inside] = (pixels[inside].astype(np.uint16) * 7 + colours[shown[inside]].astype(np.uint16) * 3) // 10
    edge = inside & _edges(shown, max(1, round(max(height, width) / 800)))
    pixels[edge] = colours[shown[edge]]


def _edges(labels: npt.NDArray[np.uint16], reach: int) -> npt.NDArray[np.bool_]:
    """(H, W) bool: pixels with one of another label no more than `reach` off, along a row or column."""
    edge = np.zeros(labels.shape, np.bool_)
    for step in range(1, reach + 1):
        across, down = labels[:, step:] != labels[:, :-step], labels[step:] != labels[:-step]
        edge[:, step:] |= across
        edge[:, :-step] |= across
        edge[step:] |= down
        edge[:-step] |= down
    return edge
