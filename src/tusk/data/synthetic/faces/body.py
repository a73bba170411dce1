"""What is drawn flat, from outlines: ears, neck, clothes, glasses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.faces.person import Colour, Person, mix
from tusk.data.synthetic.faces.shape import Rotation
from tusk.data.synthetic.faces.trace import Light

Outline = list[tuple[float, float]]
Brightness = Callable[[Float32Array, Float32Array], Float32Array]
FINE = 2  # outlines are filled this many times finer than the picture, for smooth edges


@dataclass(frozen=True)
class Place:
    """Where the head's origin lies in the picture, and how many pixels a head unit has."""

    x: float
    y: float
    unit: float


@dataclass(frozen=True)
class _Canvas:
    """A picture that is drawn on in head units about the head's origin."""

    picture: Float32Array  # (H, W, 3), 0..255
    place: Place

    def fill(self, outline: Outline, colour: Colour, brightness: Brightness | None = None, alpha: float = 1.0) -> None:
        """`brightness` gives, from head units right and down, what the colour is multiplied with."""
        box = self._box(outline, 0)
        if box is None:
            return
        mask = Image.new("L", ((box[2] - box[0]) * FINE, (box[3] - box[1]) * FINE))
        ImageDraw.Draw(mask).polygon(self._fine(outline, box), fill=255)
        self._blend(mask, box, colour, brightness, alpha)

    def line(self, outline: Outline, colour: Colour, width: float, alpha: float = 1.0) -> None:
        pixels = max(1, round(width * self.place.unit * FINE))
        box = self._box(outline, pixels)
        if box is None:
            return
        mask = Image.new("L", ((box[2] - box[0]) * FINE, (box[3] - box[1]) * FINE))
        ImageDraw.Draw(mask).line(self._fine(outline, box), fill=255, width=pixels, joint="curve")
        self._blend(mask, box, colour, None, alpha)

    def _box(self, outline: Outline, margin: int) -> tuple[int, int, int, int] | None:
        rows, columns = self.picture.shape[:2]
        xs = [self.place.x + x * self.place.unit for x, _ in outline]
        ys = [self.place.y + y * self.place.unit for _, y in outline]
        left, right = max(int(min(xs)) - margin - 1, 0), min(int(max(xs)) + margin + 2, columns)
        top, bottom = max(int(min(ys)) - margin - 1, 0), min(int(max(ys)) + margin + 2, rows)
        return (left, top, right, bottom) if left < right and top < bottom else None

    def _fine(self, outline: Outline, box: tuple[int, int, int, int]) -> Outline:
        place = self.place
        return [
            (
                (place.x + x * place.unit - box[0] + 0.5) * FINE - 0.5,
                (place.y + y * place.unit - box[1] + 0.5) * FINE - 0.5,
            )
            for x, y in outline
        ]

    def _blend(
        self,
        mask: Image.Image,
        box: tuple[int, int, int, int],
        colour: Colour,
        brightness: Brightness | None,
        alpha: float,
    ) -> None:
        left, top, right, bottom = box
        share = np.asarray(mask.reduce(FINE), dtype=np.float32) * np.float32(alpha / 255)
        part = self.picture[top:bottom, left:right]
        colours = np.broadcast_to(np.array(colour, np.float32), part.shape)
        if brightness:
            scale = np.float32(1 / self.place.unit)
            xs = (np.arange(left, right, dtype=np.float32) - np.float32(self.place.x)) * scale
            ys = (np.arange(top, bottom, dtype=np.float32) - np.float32(self.place.y)) * scale
            colours = colours * brightness(xs[None, :], ys[:, None])[:, :, None]
        part += (colours - part) * share[:, :, None]


def _lit(colour: Colour, direct: float, light: Light) -> Colour:
    red, green, blue = (c * (a + direct * k) for c, a, k in zip(colour, light.ambient, light.colour, strict=True))
    return red, green, blue


def _weights(t: float) -> tuple[float, float, float, float]:
    """How much each of four points in a row counts at share t between the second and the third (Catmull-Rom)."""
    square, cube = t * t, t * t * t
    return (
        (2 * square - t - cube) / 2,
        (2 - 5 * square + 3 * cube) / 2,
        (t + 4 * square - 3 * cube) / 2,
        (cube - square) / 2,
    )


_STEPS = [_weights(step / 4) for step in range(4)]


def _curve(points: Outline) -> Outline:
    """A smooth line through the points."""
    ends = [points[0], *points, points[-1]]
    smooth = [
        (p * a[0] + q * b[0] + r * c[0] + s * d[0], p * a[1] + q * b[1] + r * c[1] + s * d[1])
        for a, b, c, d in zip(ends, ends[1:], ends[2:], ends[3:], strict=False)
        for p, q, r, s in _STEPS
    ]
    return [*smooth, points[-1]]


def draw_body(picture: Float32Array, person: Person, rotation: Rotation, place: Place, light: Light) -> None:
    """Neck, shoulders and clothes; they stand upright, however the head leans."""
    canvas = _Canvas(picture, place)
    pivot = rotation.project(np.array([[0, 0.72, -0.36]], np.float32))[0]
    x, y = float(pivot[0]) * 0.75, float(pivot[1]) + 0.55 + 0.5 * (person.chin - 1.1)
    half = 0.47 if person.jaw < 0.75 else 0.40
    top_x, top_y = float(pivot[0]), float(pivot[1]) - 0.35
    lx, lz = light.direction[0], light.direction[2]

    def rounded(radius: float, dim: float) -> Brightness:
        def brightness(right: Float32Array, down: Float32Array) -> Float32Array:
            across = np.clip((right - x) * (1 / radius), -0.98, 0.98)
            facing = np.clip(across * lx + np.sqrt(1 - across * across) * lz, 0, 1)
            base = 0.5 + 0.55 * facing
            # The head throws its shadow on the neck.
            chin = np.clip((down - (y - 0.38)) * 1.6, 0, 1) * (1 - dim) + dim
            return np.asarray(base * chin, dtype=np.float32)

        return brightness

    skin = _lit(person.skin, 0.7, light)
    neck = _curve(
        [(top_x - half, top_y), (x - half, y - 0.25), (x - half * 1.15, y), (x - 0.8, y + 0.26), (x - 0.9, y + 1.2)]
    )
    neck += _curve(
        [(x + 0.9, y + 1.2), (x + 0.8, y + 0.26), (x + half * 1.15, y), (x + half, y - 0.25), (top_x + half, top_y)]
    )
    canvas.fill(neck, skin, rounded(0.75, 0.5))
    if person.collar in ("shirt", "jacket"):
        _draw_clothes(canvas, x, y, half, 0.34, _lit(person.shirt, 0.7, light), rounded(2.2, 1.0))
        flap = _lit(mix(person.shirt, (120, 120, 130), 0.12), 0.75, light)
        for side in (-1.0, 1.0):
            canvas.fill(
                [
                    (x + side * half * 1.02, y - 0.22),
                    (x + side * half * 1.3, y - 0.02),
                    (x + side * 0.3, y + 0.52),
                    (x, y + 0.34),
                ],
                flap,
            )
    if person.collar == "jacket":
        _draw_clothes(canvas, x, y - 0.02, half * 1.15, 1.5, _lit(person.clothes, 0.6, light), rounded(2.2, 1.0))
    elif person.collar != "shirt":
        depth = 0.22 if person.collar == "round" else 0.72
        _draw_clothes(canvas, x, y, half * 1.12, depth, _lit(person.clothes, 0.7, light), rounded(2.2, 1.0))


def _draw_clothes(
    canvas: _Canvas, x: float, y: float, half: float, depth: float, colour: Colour, brightness: Brightness
) -> None:
    shoulder = [(half, -0.06), (0.95, 0.20), (1.5, 0.36), (1.82, 0.75), (1.92, 1.6)]
    left = _curve([(x - a, y + b) for a, b in shoulder])
    right = _curve([(x + a, y + b) for a, b in reversed(shoulder)])
    if depth < 0.3:
        notch = _curve(
            [
                (x + half, y - 0.06),
                (x + half * 0.6, y + depth * 0.75),
                (x, y + depth),
                (x - half * 0.6, y + depth * 0.75),
                (x - half, y - 0.06),
            ]
        )
    else:
        notch = [(x + half, y - 0.06), (x, y + depth), (x - half, y - 0.06)]
    far_below = y + 40  # beyond the edge of any image
    hem = [(x - 1.92, far_below), (x + 1.92, far_below)]
    canvas.fill(left + hem + right + notch, colour, brightness)


def draw_ear(
    picture: Float32Array, person: Person, rotation: Rotation, place: Place, light: Light, side: float
) -> None:
    angles = [2 * math.pi * step / 16 for step in range(16)]
    outline = np.array(
        [
            (
                side * (person.width - 0.03 + 0.06 * (1 - math.cos(angle))),
                0.13 + (0.21 if math.sin(angle) < 0 else 0.18) * math.sin(angle) - 0.03 * math.cos(angle),
                -0.08 + 0.12 * math.cos(angle),
            )
            for angle in angles
        ],
        np.float32,
    )
    colour = mix(person.skin, (190, 80, 70), 0.12)
    facing = max(0.0, side * light.direction[0] * 0.6 + light.direction[2] * 0.5)
    canvas = _Canvas(picture, place)
    middle = np.array([side * (person.width + 0.03), 0.12, -0.08], np.float32)
    for scale, direct in ((1.0, facing), (0.5, facing * 0.72)):
        points = rotation.project(middle + (outline - middle) * np.float32(scale))
        canvas.fill([(float(p[0]), float(p[1])) for p in points], _lit(colour, direct, light))


def draw_glasses(picture: Float32Array, person: Person, rotation: Rotation, place: Place) -> None:
    canvas = _Canvas(picture, place)
    front = 0.80
    width, height = 0.245, 0.165 + 0.02 * (4 - person.glasses_round)
    thick = 0.05 if person.glasses == "bold" else 0.026

    def seen(points: list[tuple[float, float, float]]) -> Outline:
        return [(float(p[0]), float(p[1])) for p in rotation.project(np.array(points, np.float32))]

    for side in (-1.0, 1.0):
        middle = side * (person.eye_spacing + 0.015)
        rim = []
        for step in range(25):
            angle = 2 * math.pi * step / 24
            c, s = math.cos(angle), math.sin(angle)
            # A superellipse: from round lenses to nearly square ones.
            reach = (abs(c) ** person.glasses_round + abs(s) ** person.glasses_round) ** (-1 / person.glasses_round)
            across = width * reach * c
            rim.append((middle + across, 0.02 + height * reach * s, front - 0.10 * abs(middle + across)))
        outline = seen(rim)
        canvas.fill(outline, (236, 242, 250), alpha=0.10)
        # Only the arm on the side that is turned to the viewer is seen in front of the face.
        if side * person.pose.yaw < 0.12:
            hinge = (side * (person.eye_spacing + 0.015 + width), -0.02, front - 0.06)
            temple = (side * (person.width + 0.03), -0.02, 0.15)
            canvas.line(seen([hinge, temple, (side * (person.width + 0.03), 0.0, -0.05)]), person.glasses_colour, thick)
        canvas.line(outline, person.glasses_colour, thick)
    inner = person.eye_spacing + 0.015 - width
    canvas.line(
        seen([(-inner, -0.02, front), (0, -0.05, front + 0.04), (inner, -0.02, front)]), person.glasses_colour, thick
    )
