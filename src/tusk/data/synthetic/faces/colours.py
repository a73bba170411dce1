"""The colours of a face, straight from the front: skin, eyes, brows, lips, beard."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.faces.hair import noise
from tusk.data.synthetic.faces.person import Colour, Person, mix
from tusk.data.synthetic.faces.shape import STEP, Volume, bump, mouth_corners, ramp

FINE = 2  # the features are drawn this many times finer than the height map, then reduced
DARK: Colour = (38, 24, 22)
Point = tuple[float, float]


def face_colours(person: Person, head: Volume, rng: np.random.Generator) -> Float32Array:
    """(rows, columns, 3): the colour of the skin at every place of the head's height map."""
    x, y = head.xs, head.ys
    shape = head.shape
    colours = np.empty((*shape, 3), np.float32)
    colours[:] = np.array(person.skin, np.float32)
    colours *= (1 + 0.025 * noise(rng, (9, 9), shape))[:, :, None]
    side = np.abs(x)
    deep = mix(person.skin, (96, 36, 30), 0.6)
    mouth = person.mouth_y + person.mouth_open
    _glaze(colours, bump(side, 0.44, 0.3), bump(y, 0.34, 0.26), person.blush, (214, 92, 84))
    _glaze(colours, bump(x, 0, 0.16), bump(y, person.nose_y, 0.14), 0.35 * person.blush, (206, 84, 76))
    _glaze(colours, bump(side, person.eye_spacing, 0.27), bump(y, -0.02, 0.16), 0.45, deep)
    _glaze(colours, bump(x, 0, 0.24), bump(y, person.nose_y + 0.14, 0.09), 0.35, deep)
    _glaze(colours, bump(x, 0, 0.2), bump(y, mouth + 0.17, 0.08), 0.3, deep)
    # The fold from the nose to the mouth shows with a smile.
    fold = side - (person.nose_width + 0.02 + 0.45 * (y - person.nose_y))
    _glaze(colours, bump(fold, 0, 0.05), bump(y, person.nose_y + 0.15, 0.2), 0.12 + 0.3 * max(person.smile, 0.0), deep)
    _grow_beard(colours, person, head, rng)
    _draw_features(colours, person, head)
    return colours


def _glaze(colours: Float32Array, across: Float32Array, along: Float32Array, strength: float, colour: Colour) -> None:
    """Mix in a colour, by the product of a profile over x (or over both) and one over y that is 0 in most rows."""
    rows = np.nonzero(along[:, 0])[0]
    part = slice(int(rows[0]), int(rows[-1]) + 1)
    alpha = (across[part] if len(across) > 1 else across) * along[part] * np.float32(strength)
    colours[part] += (np.array(colour, np.float32) - colours[part]) * alpha[:, :, None]


def _grow_beard(colours: Float32Array, person: Person, head: Volume, rng: np.random.Generator) -> None:
    if person.beard == "none":
        return
    x, y = head.xs, head.ys
    across, along = x * (1 / 0.58), (y - 0.14) * (1 / 0.47)
    cheek_free = np.asarray(across * across + along * along, dtype=np.float32)
    jaw = ramp(cheek_free, 0.92, 1.12) * ramp(y, 0.0, 0.3)
    lip_top = person.mouth_y - 0.07
    moustache = ramp(np.abs(x), 0.34, 0.22) * ramp(y, person.nose_y + 0.10, person.nose_y + 0.17)
    drooping = np.asarray(y - 0.35 * np.abs(x), dtype=np.float32)
    moustache = moustache * ramp(drooping, lip_top + 0.07, lip_top)
    chin = bump(x, 0, 0.40) * ramp(y, person.mouth_y + 0.08, person.mouth_y + 0.2)
    if person.beard == "moustache":
        area, strength = moustache, 0.9
    elif person.beard == "goatee":
        ring = ramp(np.abs(np.abs(x) - 0.30), 0.09, 0.04) * ramp(y, lip_top - 0.04, lip_top + 0.05)
        area, strength = np.maximum(np.maximum(moustache, chin * 1.2), ring), 0.85
    else:
        area, strength = np.maximum(jaw, moustache), 0.9 if person.beard == "full" else 0.36
    grain = noise(rng, (70, 70), head.shape)
    hair = mix(person.hair, DARK, 0.25)
    _glaze(
        colours, np.clip(area * strength * (0.92 + 0.16 * grain), 0, 0.96), (y > -0.05).astype(np.float32), 1.0, hair
    )


class _Pen:
    """Draws on a finer copy of a part of the colours, in head coordinates."""

    def __init__(self, colours: Float32Array, head: Volume, box: tuple[float, float, float, float]) -> None:
        self._left, self._right = (round((v - head.left) / STEP) for v in (box[0], box[2]))
        self._top, self._bottom = (round((v - head.top) / STEP) for v in (box[1], box[3]))
        # What is added to a scaled x and y; pixel centres are whole numbers at both scales.
        self._right_of_left = (0.5 - head.left / STEP - self._left) * FINE - 0.5
        self._down_of_top = (0.5 - head.top / STEP - self._top) * FINE - 0.5
        self._colours = colours
        part = np.clip(colours[self._top : self._bottom, self._left : self._right], 0, 255).astype(np.uint8)
        small = Image.fromarray(part)
        self._image = small.resize((small.width * FINE, small.height * FINE), Image.Resampling.BICUBIC)
        self._draw = ImageDraw.Draw(self._image)

    def _placed(self, points: list[Point]) -> list[Point]:
        scale = FINE / STEP
        right, down = self._right_of_left, self._down_of_top
        return [(x * scale + right, y * scale + down) for x, y in points]

    def fill(self, points: list[Point], colour: Colour) -> None:
        self._draw.polygon(self._placed(points), fill=_rounded(colour))

    def line(self, points: list[Point], colour: Colour, width: float) -> None:
        pixels = max(1, round(width / STEP * FINE))
        self._draw.line(self._placed(points), fill=_rounded(colour), width=pixels, joint="curve")

    def disc(self, middle: Point, radius: float, colour: Colour) -> None:
        x, y = self._placed([middle])[0]
        reach = radius / STEP * FINE
        self._draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=_rounded(colour))

    def finish(self) -> None:
        done = np.asarray(self._image.reduce(FINE), dtype=np.float32)
        self._colours[self._top : self._bottom, self._left : self._right] = done


def _rounded(colour: Colour) -> tuple[int, int, int]:
    red, green, blue = (min(max(round(value), 0), 255) for value in colour)
    return red, green, blue


def _arc(start: Point, end: Point, rise: float, lean: float = 0.5, steps: int = 12) -> list[Point]:
    """A curve from start to end whose highest place is `rise` above (negative: below) the chord, at share `lean`."""
    points = []
    for step in range(steps + 1):
        share = step / steps
        # A cubic that is 0 at both ends and 1 at `lean`, near enough.
        tilt = 1 + (0.5 - lean) * 2 * (0.5 - share) * 2
        height = 4 * share * (1 - share) * tilt
        points.append((start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share - rise * height))
    return points


def _draw_features(colours: Float32Array, person: Person, head: Volume) -> None:
    pen = _Pen(colours, head, (-0.62, -0.40, 0.62, 1.0))
    for side in (-1.0, 1.0):
        _draw_eye(pen, person, side)
        _draw_brow(pen, person, side)
        nostril = (side * person.nose_width * 0.50, person.nose_y + 0.085)
        wing = side * person.nose_width * 0.30
        shade = mix(person.skin, (40, 14, 12), 0.62)
        pen.fill(_arc((nostril[0] - wing / 2, nostril[1]), (nostril[0] + wing, nostril[1]), 0.035), shade)
    _draw_mouth(pen, person)
    pen.finish()


def _draw_eye(pen: _Pen, person: Person, side: float) -> None:
    size = person.eye_size
    x = side * person.eye_spacing
    inner, outer = (x - side * size, 0.012), (x + side * size, -0.008)
    upper = _arc(inner, outer, size * person.eye_open * 0.80, 0.42)
    lower = _arc(inner, outer, -size * (0.10 + 0.40 * person.eye_open), 0.6)
    shadow = mix(person.skin, (70, 26, 24), 0.5)
    crease = [(px, py - 0.045) for px, py in upper[1:]]
    pen.line(crease, mix(person.skin, (80, 32, 28), 0.42), 0.016)
    pen.fill(upper + lower[::-1], (236, 231, 227))
    radius = size * 0.47
    middle = (x + person.gaze[0] * size * 0.45, person.gaze[1] * size * 0.4 - 0.004)
    pen.fill(_between(upper, lower, middle, radius), mix(person.iris, DARK, 0.55))
    pen.fill(_between(upper, lower, middle, radius * 0.84), person.iris)
    pen.fill(_between(upper, lower, middle, radius * 0.45), (14, 11, 12))
    pen.disc((middle[0] - 0.018, middle[1] - 0.022), 0.013, (250, 250, 250))
    pen.line(lower, shadow, 0.012)
    lash = mix(mix(person.skin, DARK, 0.6), (20, 15, 16), person.lashes)
    pen.line(upper, lash, 0.018 + 0.014 * person.lashes)
    if person.lashes > 0.6:
        pen.line([outer, (outer[0] + side * 0.022, outer[1] - 0.02)], lash, 0.016)


def _between(upper: list[Point], lower: list[Point], middle: Point, radius: float) -> list[Point]:
    """A disc that the lids cut off: every point of its rim is moved to the lid that it lies beyond."""
    start, step = upper[0][0], upper[1][0] - upper[0][0]  # both lids have their points at the same even steps of x
    last = len(upper) - 1
    rim = []
    for c, s in _CIRCLE:
        along = min(max((middle[0] + radius * c - start) / step, 0.0), float(last))
        before = min(int(along), last - 1)
        share = along - before
        top = upper[before][1] + (upper[before + 1][1] - upper[before][1]) * share
        bottom = lower[before][1] + (lower[before + 1][1] - lower[before][1]) * share
        rim.append((start + along * step, min(max(middle[1] + radius * s, top), bottom)))
    return rim


_CIRCLE = [(math.cos(math.pi * step / 8), math.sin(math.pi * step / 8)) for step in range(16)]


def _draw_brow(pen: _Pen, person: Person, side: float) -> None:
    thick = person.brow
    y = -0.175 - person.brow_lift
    inner = (side * (person.eye_spacing - 0.19), y + 0.03)
    outer = (side * (person.eye_spacing + 0.20), y + 0.025 - 0.02 * person.smile)
    top = _arc((inner[0], inner[1] - thick), outer, 0.045 + thick * 0.3, 0.6)
    bottom = _arc((inner[0], inner[1] + thick * 0.7), outer, 0.04, 0.6)
    hair = mix(mix(person.hair, DARK, 0.45), person.skin, 0.12)
    pen.fill(top + bottom[::-1], hair)


def _draw_mouth(pen: _Pen, person: Person) -> None:
    corner_x, corner_y = mouth_corners(person)
    left, right = (-corner_x, corner_y), (corner_x, corner_y)
    opening = person.mouth_open
    upper_y, lower_y = person.mouth_y, person.mouth_y + opening
    full = person.lips
    # Rises are measured from the corners' line.
    upper_edge = _arc(left, right, corner_y - upper_y)
    lower_edge = _arc(left, right, corner_y - lower_y)
    bow = full * (0.9 - 0.25 * max(person.smile, 0))
    top = [
        *_arc(left, (-0.05, upper_y - bow), bow * 0.15, steps=6),
        (0, upper_y - bow * 0.78),
        *_arc((0.05, upper_y - bow), right, bow * 0.15, steps=6),
    ]
    bottom = _arc(left, right, corner_y - lower_y - full * 1.15)
    upper_lip = mix(person.lip, DARK, 0.14)
    pen.fill(top + upper_edge[::-1], upper_lip)
    pen.fill(lower_edge + bottom[::-1], person.lip)
    pen.fill(
        _arc((-corner_x * 0.4, lower_y + full * 0.4), (corner_x * 0.4, lower_y + full * 0.4), -full * 0.35),
        mix(person.lip, (255, 225, 220), 0.22),
    )
    inside = mix(person.lip, (40, 10, 14), 0.72)
    if opening > 0.015:
        pen.fill(upper_edge + lower_edge[::-1], inside)
        if person.teeth:
            shown = min(opening * 0.8, 0.075)
            teeth = _arc((left[0] * 0.86, corner_y), (right[0] * 0.86, corner_y), corner_y - upper_y - shown)
            pen.fill([(px * 0.86, py) for px, py in upper_edge] + teeth[::-1], (238, 232, 222))
    else:
        pen.line(upper_edge, inside, 0.02)
    for px, py in (left, right):
        pen.disc((px, py), 0.016, mix(person.skin, (60, 16, 18), 0.7))
