"""Draws one person onto a picture: hair behind, body, head, hair in front, glasses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageChops, ImageFilter

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.faces.body import Place, draw_body, draw_ear, draw_glasses
from tusk.data.synthetic.faces.colours import face_colours
from tusk.data.synthetic.faces.hair import STYLES, HairStyle, coverage, hair_volume, noise, strands
from tusk.data.synthetic.faces.person import Person
from tusk.data.synthetic.faces.shape import Rotation, head_outline, head_volume, landmarks, ramp
from tusk.data.synthetic.faces.trace import IndexArray, Light, lit, shade, trace


@dataclass(frozen=True)
class Measured:
    """What is known exactly about a head before it is placed, in head units about its origin."""

    points: Float32Array  # (5, 2)
    box: tuple[float, float, float, float]  # left, top, right, bottom of the head without its hair


def measure(person: Person) -> Measured:
    rotation = Rotation.of(person.pose)
    outline = rotation.project(head_outline(person))
    points = rotation.project(landmarks(person))[:, :2]
    low, high = outline.min(axis=0), outline.max(axis=0)
    return Measured(points, (float(low[0]), float(low[1]), float(high[0]), float(high[1])))


@dataclass(frozen=True)
class _Window:
    """The part of the picture in which the head and its hair lie, as rays in head units."""

    rows: slice
    columns: slice
    right: Float32Array  # (N,)
    down: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start


def draw_person(picture: Float32Array, person: Person, place: Place, light: Light, rng: np.random.Generator) -> None:
    """Draw over `picture`, (H, W, 3) with values 0..255; place and picture are both in supersampled pixels."""
    rotation = Rotation.of(person.pose)
    window = _window(picture.shape[:2], place, 1.45, 1.6, 2.1)
    style = STYLES.get(person.hair_style)
    hair = _Hair(person, style, rotation, window, light, rng) if style else None
    if hair:
        _blend(picture, window, hair.hits.ray, hair.behind, hair.behind_alpha)
    draw_body(picture, person, rotation, place, light)
    ears = () if style and style.covers_ears else (-1.0, 1.0)
    for side in ears:
        if side * person.pose.yaw > 0.06:
            draw_ear(picture, person, rotation, place, light, side)
    _draw_head(picture, person, rotation, window, light, hair, rng)
    for side in ears:
        if side * person.pose.yaw <= 0.06:
            draw_ear(picture, person, rotation, place, light, side)
    if person.glasses != "none":
        draw_glasses(picture, person, rotation, place)


def _blend(picture: Float32Array, window: _Window, ray: IndexArray, colours: Float32Array, alpha: Float32Array) -> None:
    row, column = np.divmod(ray, window.shape[1])
    place = (row + window.rows.start) * picture.shape[1] + (column + window.columns.start)
    flat = picture.reshape(-1, 3)
    old = flat.take(place, axis=0)
    flat[place] = old + (colours - old) * alpha[:, None]


def _window(shape: tuple[int, ...], place: Place, beside: float, above: float, below: float) -> _Window:
    top, bottom = (min(max(round(place.y + v * place.unit), 0), shape[0]) for v in (-above, below))
    left, right = (min(max(round(place.x + v * place.unit), 0), shape[1]) for v in (-beside, beside))
    columns = (np.arange(left, right, dtype=np.float32) - np.float32(place.x)) * np.float32(1 / place.unit)
    rows = (np.arange(top, bottom, dtype=np.float32) - np.float32(place.y)) * np.float32(1 / place.unit)
    size = (bottom - top, right - left)
    return _Window(
        slice(top, bottom),
        slice(left, right),
        np.ascontiguousarray(np.broadcast_to(columns[None, :], size)).ravel(),
        np.ascontiguousarray(np.broadcast_to(rows[:, None], size)).ravel(),
    )


class _Hair:
    """The hair as two layers: what shows behind head and body, and what falls in front of them."""

    def __init__(
        self,
        person: Person,
        style: HairStyle,
        rotation: Rotation,
        window: _Window,
        light: Light,
        rng: np.random.Generator,
    ) -> None:
        volume = hair_volume(person, style)
        right, down = window.right, window.down
        curly = style.curl > 0.5
        if style.curl:
            cells, reach = (26, 0.07) if curly else (10, 0.035)
            right = right + np.float32(reach) * noise(rng, (cells, cells), window.shape).ravel()
            down = down + np.float32(reach) * noise(rng, (cells, cells), window.shape).ravel()
        hits = trace(volume, rotation, right, down, steps=10)
        grain = strands(rng, style, volume.shape).ravel().take(hits.place)
        alpha = coverage(person, style, volume, hits, grain)
        self.lies_close = not style.covers_ears and not curly
        if self.lies_close:
            there = np.nonzero(alpha)[0]
            hits, grain, alpha = hits.pick(there), grain.take(there), alpha.take(there)
        direct, gloss = shade(volume, hits, rotation, light)
        base = np.array(person.hair, np.float32) * (1 + np.float32(0.3 if curly else 0.2) * grain)[:, None]
        self.hits = hits
        self.front = lit(base, direct, light) + (gloss * (0.6 + 0.6 * grain) * (14 if curly else 40))[:, None]
        if self.lies_close:
            self.behind, self.behind_alpha = self.front, alpha
        else:
            # Seen through the opening for the face: the dark inside of the hair at the back.
            self.behind, self.behind_alpha = lit(base * np.float32(0.5), direct * 0.2, light), np.ones_like(alpha)
        if not style.covers_ears:
            nape = ramp(hits.y, 0.22, 0.36) * ramp(hits.z, 0.1, -0.1)  # lies behind the neck
            alpha = alpha * (1 - nape)
        self.alpha = alpha


def _draw_head(
    picture: Float32Array,
    person: Person,
    rotation: Rotation,
    window: _Window,
    light: Light,
    hair: _Hair | None,
    rng: np.random.Generator,
) -> None:
    head = head_volume(person)
    hits = trace(head, rotation, window.right, window.down, steps=15)
    direct, gloss = shade(head, hits, rotation, light)
    colours = face_colours(person, head, rng).reshape(-1, 3).take(hits.place, axis=0)
    if hair:
        # Hair that lies behind the head, such as that of the nape, does not cover it.
        depth = np.full(window.right.shape, -9, np.float32)
        depth[hits.ray] = hits.depth - np.float32(0.03)
        below = depth[hair.hits.ray]
        hair_alpha = hair.alpha * (hair.hits.depth > below)
        if hair.lies_close:
            # At the temple that is turned away it would stand off the head as a thin line.
            hair_alpha = hair_alpha * ((below > -9) | (hair.hits.y < -0.55) | (hair.hits.z < 0.05))
        # The hair throws a soft shadow on the skin below it.
        cover = np.zeros(window.right.shape, np.uint8)
        cover[hair.hits.ray] = (hair_alpha * 255).astype(np.uint8)
        reach = max(1, round(0.05 / float(window.right[1] - window.right[0])))
        image = Image.fromarray(cover.reshape(window.shape))
        shadow = ImageChops.offset(image, 0, reach).filter(ImageFilter.BoxBlur(reach))
        direct = direct * (1 - np.asarray(shadow, dtype=np.float32).ravel()[hits.ray] * np.float32(0.6 / 255))
    brightness = sum(person.skin) / 750
    skin = lit(colours, direct, light) + (gloss * np.float32(10 + 14 * (1 - brightness)))[:, None]
    _blend(picture, window, hits.ray, skin, np.ones_like(gloss))
    if hair:
        _blend(picture, window, hair.hits.ray, hair.front, hair_alpha)
