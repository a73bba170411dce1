"""The head in three dimensions: its surface, the hair around it, the five landmarks on it, and their exact projection.

A volume is held as two height maps over (x, y): the surface towards the viewer and the one away from it.
Only +, -, *, / and square roots reach the pixels: these round alike on every machine, exp and sin do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.faces.person import Person, Pose

LANDMARKS = ("left eye", "right eye", "nose", "left mouth corner", "right mouth corner")
STEP = 0.016  # head units between two entries of a height map
EMPTY = -9.0  # height where there is no surface
Vector = tuple[float, float, float]
BROW_LINE = -0.10  # y where the skull is widest
CROWN = -1.12


@dataclass(frozen=True)
class Rotation:
    """A rotation of the head about its origin; `rows` take head coordinates to (right, down, to the viewer)."""

    rows: tuple[Vector, Vector, Vector]

    @staticmethod
    def of(pose: Pose) -> Rotation:
        cy, sy = math.cos(pose.yaw), math.sin(pose.yaw)
        cp, sp = math.cos(pose.pitch), math.sin(pose.pitch)
        cr, sr = math.cos(pose.roll), math.sin(pose.roll)
        right = (cy, 0.0, sy)
        down = (-sp * sy, cp, sp * cy)
        toward = (-cp * sy, -sp, cp * cy)
        rolled_right = (cr * right[0] - sr * down[0], cr * right[1] - sr * down[1], cr * right[2] - sr * down[2])
        rolled_down = (sr * right[0] + cr * down[0], sr * right[1] + cr * down[1], sr * right[2] + cr * down[2])
        return Rotation((rolled_right, rolled_down, toward))

    def project(self, points: Float32Array) -> Float32Array:
        """(N, 3) in head coordinates -> (N, 3) right, down, towards the viewer."""
        x, y, z = points[:, 0], points[:, 1], points[:, 2]
        return np.stack([row[0] * x + row[1] * y + row[2] * z for row in self.rows], axis=1).astype(np.float32)

    def into_head(self, vector: Vector) -> Vector:
        """A direction of the image, such as that of the light, as the head sees it."""
        (a, b, c), (d, e, f), (g, h, i) = self.rows
        u, v, w = vector
        return a * u + d * v + g * w, b * u + e * v + h * w, c * u + f * v + i * w


@dataclass(frozen=True)
class Volume:
    """A closed shape between two height maps."""

    xs: Float32Array  # (1, columns)
    ys: Float32Array  # (rows, 1)
    front: Float32Array  # (rows, columns) z, EMPTY outside of the shape
    back: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.front.shape[0], self.front.shape[1]

    @property
    def left(self) -> float:
        return float(self.xs[0, 0])

    @property
    def top(self) -> float:
        return float(self.ys[0, 0])

    def points(self, every: int) -> Float32Array:
        """(N, 3) points on the whole surface: every n-th row and column."""
        front, back = self.front[::every, ::every], self.back[::every, ::every]
        rows, columns = np.nonzero(front > EMPTY)
        x, y = self.xs[0, ::every][columns], self.ys[::every, 0][rows]
        front, back = front[rows, columns], back[rows, columns]
        return np.concatenate([np.stack([x, y, front], 1), np.stack([x, y, back], 1)])


def bump(at: Float32Array, middle: float, half_width: float) -> Float32Array:
    """A smooth hill of height 1 that ends at middle +- half_width."""
    distance = (at - middle) * (1 / half_width)
    inside = np.maximum(1 - distance * distance, 0)
    return np.asarray(inside * inside, dtype=np.float32)


def ramp(at: Float32Array, low: float, high: float) -> Float32Array:
    """0 below `low`, 1 above `high`, smooth between; the other way round where low > high."""
    share = np.clip((at - low) * (1 / (high - low)), 0, 1)
    return np.asarray(share * share * (3 - 2 * share), dtype=np.float32)


def roundness(x: Float32Array, half_width: Float32Array) -> Float32Array:
    """0 at the rim .. 1 in the middle, flatter than a circle; negative outside."""
    across = x / half_width
    square = across * across
    return np.asarray(1 - square * (0.55 + 0.45 * square), dtype=np.float32)


def _up(y: Float32Array) -> Float32Array:
    """Squared share of the way from the brow to the crown; 0 below the brow."""
    share = np.clip((y - BROW_LINE) * (1 / (CROWN - BROW_LINE)), 0, 1)
    return np.asarray(share * share, dtype=np.float32)


def _down(person: Person, y: Float32Array) -> Float32Array:
    """Squared share of the way from the brow to the chin; 0 above the brow."""
    share = np.clip((y - BROW_LINE) * (1 / (person.chin - BROW_LINE)), 0, 1)
    return np.asarray(share * share, dtype=np.float32)


def _half_width(person: Person, y: Float32Array) -> Float32Array:
    up, down = _up(y), _down(person, y)
    cranium, jaw = up * (0.65 + 0.35 * up), down * (person.jaw + (1 - person.jaw) * down * down)
    return np.asarray(person.width * np.sqrt(np.maximum(1 - cranium - jaw, 1e-6)), dtype=np.float32)


def _skull(person: Person, x: Float32Array, y: Float32Array) -> tuple[Float32Array, Float32Array]:
    up, down = _up(y), _down(person, y)
    fourth = down * down
    depth = 0.74 * np.sqrt(np.maximum(1 - up - fourth * fourth, 0)) * (1 - 0.06 * np.sqrt(down))
    # The jaw has no back of the head behind it: its underside rises towards the neck.
    behind = 0.82 * np.sqrt(np.maximum(1 - up, 0)) * (1 - ramp(y, 0.1, 0.75)) - 0.10 * ramp(y, 0.45, person.chin)
    rounded = roundness(x, _half_width(person, y))
    outside = (rounded <= 0) | (y <= CROWN) | (y >= person.chin)
    profile = np.sqrt(np.maximum(rounded, 0))
    return (
        np.where(outside, EMPTY, depth * profile).astype(np.float32),
        np.where(outside, EMPTY, -behind * profile).astype(np.float32),
    )


def _relief(person: Person, x: Float32Array, y: Float32Array) -> Float32Array:
    """What stands out of or sinks into the skull: brow, sockets, nose, cheeks, lips, chin."""
    p = person
    side = np.abs(x)
    relief = 0.035 * bump(side, 0.30, 0.42) * bump(y, -0.19, 0.2)
    relief = relief - 0.105 * bump(side, p.eye_spacing - 0.02, 0.30) * bump(y, 0.0, 0.24)
    relief = relief + 0.05 * bump(side, p.eye_spacing, 0.21) * bump(y, 0.01, 0.15)
    relief = relief + 0.045 * bump(side, 0.46, 0.34) * bump(y, 0.28, 0.34)
    # The nose: a ridge that widens and rises towards the tip, the tip itself, and a wing on either side.
    along = ramp(y, -0.22, p.nose_y + 0.02)
    under = ramp(y, p.nose_y + 0.17, p.nose_y - 0.03)
    relief = relief + (p.nose_height * 0.30 + p.nose_height * 0.42 * along) * along * under * bump(x, 0, 0.19)
    relief = relief + p.nose_height * 0.42 * bump(x, 0, 0.17) * bump(y, p.nose_y, 0.17)
    relief = relief + 0.09 * bump(side, p.nose_width * 0.68, 0.11) * bump(y, p.nose_y + 0.05, 0.12)
    # The mouth and the chin.
    relief = relief + 0.06 * bump(x, 0, 0.42) * bump(y, p.mouth_y, 0.30)
    relief = relief + 0.035 * bump(x, 0, p.mouth_width * 1.05) * (
        bump(y, p.mouth_y - 0.045, 0.07) + 1.2 * bump(y, p.mouth_y + 0.065 + p.mouth_open, 0.08)
    )
    relief = relief - 0.035 * bump(x, 0, 0.26) * bump(y, p.mouth_y + 0.20 + p.mouth_open, 0.1)
    return relief + 0.06 * bump(x, 0, 0.30) * bump(y, p.chin - 0.14, 0.19)


def grid(left: float, top: float, right: float, bottom: float) -> tuple[Float32Array, Float32Array]:
    """The x (1, columns) and y (rows, 1) of a height map."""
    columns, rows = round((right - left) / STEP) + 1, round((bottom - top) / STEP) + 1
    xs = np.float32(left) + np.float32(STEP) * np.arange(columns, dtype=np.float32)
    ys = np.float32(top) + np.float32(STEP) * np.arange(rows, dtype=np.float32)
    return xs[None, :], ys[:, None]


def head_volume(person: Person) -> Volume:
    xs, ys = grid(-0.95, CROWN - 0.05, 0.95, person.chin + 0.05)
    front, back = _skull(person, xs, ys)
    return Volume(xs, ys, np.where(front > EMPTY, front + _relief(person, xs, ys), EMPTY).astype(np.float32), back)


_ACROSS = np.array([0, 0.15, 0.35, 0.55, 0.72, 0.86, 0.95, 0.999], np.float32)


def head_outline(person: Person) -> Float32Array:
    """(N, 3) points all over the head, for its bounding box: few of them, but up to its very rim."""
    y = np.linspace(CROWN + 1e-3, person.chin - 1e-3, 48, dtype=np.float32)[:, None]
    x = _half_width(person, y) * np.concatenate([-_ACROSS[::-1], _ACROSS])
    front, back = _skull(person, x, y)
    front = np.asarray(front + _relief(person, x, y), dtype=np.float32)
    y = np.broadcast_to(y, x.shape)
    return np.stack(
        [np.concatenate([part.ravel(), other.ravel()]) for part, other in ((x, x), (y, y), (front, back))], 1
    )


def mouth_corners(person: Person) -> tuple[float, float]:
    """How far the corners are from the middle line, and their y; a smile draws them out and up."""
    return (
        person.mouth_width * (1 + 0.18 * person.smile - 0.5 * person.mouth_open),
        person.mouth_y - 0.055 * person.smile + 0.35 * person.mouth_open,
    )


def landmarks(person: Person) -> Float32Array:
    """(5, 3): where each landmark lies on the surface, in head coordinates."""
    corner_x, corner_y = mouth_corners(person)
    x = np.array([-person.eye_spacing, person.eye_spacing, 0, -corner_x, corner_x], np.float32)
    y = np.array([0, 0, person.nose_y, corner_y, corner_y], np.float32)
    return np.stack([x, y, _skull(person, x, y)[0] + _relief(person, x, y)], axis=1)
