"""Scenes by CLEVR's rules: which things stand where, and where the camera and the lamps are.

Lengths are those of CLEVR's world: the ground is z = 0, things stand at x, y in -3..3, the camera looks at the origin.
Whether every thing is seen well enough shows in the picture alone, so that rule is kept in `clevr_made`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SHAPES = ("cube", "sphere", "cylinder")
COLORS = ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow")
SIZES = ("small", "large")
MATERIALS = ("rubber", "metal")

CUBE, SPHERE, CYLINDER = range(3)
RUBBER, METAL = range(2)

RADII = (0.35, 0.7)  # half the height of a small and of a large thing
SPREAD = 3.0  # things stand within this distance of the origin along x and along y
GAP = 0.25  # at least this between the bounding circles of two things
MARGIN = 0.4  # at least this between two centres along the view and across it, so that "left of" is never in doubt
TRIES_PER_THING = 50  # a scene that leaves no place for a thing after so many tries is begun anew
MOST_THINGS = 10

Vector = tuple[float, float, float]

# Where CLEVR's base scene has them, and how far each moves along every axis from scene to scene. Checked against 10,432
# objects of 2,265 scenes rendered from the original assets: their centres are reprojected to within 0.007 pixels.
CAMERA: Vector = (7.4811, -6.5076, 5.3437)
KEY_LAMP: Vector = (6.4467, -2.9052, 4.2584)
FILL_LAMP: Vector = (-4.6711, -4.0136, 3.0112)
BACK_LAMP: Vector = (-1.1685, 2.6460, 5.8157)
CAMERA_JITTER = 0.5
LAMP_JITTER = 1.0


@dataclass(frozen=True)
class Thing:
    """One object; shape, color, size and material are indices into the names above."""

    shape: int
    color: int
    size: int
    material: int
    x: float
    y: float
    rotation: float  # about the vertical, in radians

    @property
    def radius(self) -> float:
        return RADII[self.size]

    @property
    def centre(self) -> Vector:
        return (self.x, self.y, self.radius)


@dataclass(frozen=True)
class Scene:
    things: tuple[Thing, ...]
    camera: Vector = CAMERA
    key_lamp: Vector = KEY_LAMP
    fill_lamp: Vector = FILL_LAMP
    back_lamp: Vector = BACK_LAMP


def draw_scene(generator: np.random.Generator, things: int) -> Scene:
    """A scene with so many things that keeps the rules on distances."""
    while True:
        camera = _jittered(generator, CAMERA, CAMERA_JITTER)
        lamps = [_jittered(generator, lamp, LAMP_JITTER) for lamp in (KEY_LAMP, FILL_LAMP, BACK_LAMP)]
        placed = _place(generator, things, camera)
        if placed is not None:
            return Scene(placed, camera, *lamps)


def _jittered(generator: np.random.Generator, place: Vector, reach: float) -> Vector:
    x, y, z = (centre + reach * (2.0 * generator.random() - 1.0) for centre in place)
    return (x, y, z)


def _place(generator: np.random.Generator, count: int, camera: Vector) -> tuple[Thing, ...] | None:
    """Things one after another, each where it keeps its distance from those before; None if one finds no place."""
    things: list[Thing] = []
    for _ in range(count):
        size = int(generator.integers(len(SIZES)))
        for _ in range(TRIES_PER_THING):
            x, y = (SPREAD * (2.0 * generator.random() - 1.0) for _ in range(2))
            if all(far_enough(x, y, RADII[size], other, camera) for other in things):
                break
        else:
            return None
        shape = int(generator.integers(len(SHAPES)))
        color = int(generator.integers(len(COLORS)))
        material = int(generator.integers(len(MATERIALS)))
        things.append(Thing(shape, color, size, material, x, y, rotation=2.0 * math.pi * generator.random()))
    return tuple(things)


def far_enough(x: float, y: float, radius: float, other: Thing, camera: Vector) -> bool:
    """Whether a thing at (x, y) keeps CLEVR's distances from another one, for this camera."""
    across, along = x - other.x, y - other.y
    if math.hypot(across, along) - radius - other.radius < GAP:
        return False
    # The directions "behind" and "left" of CLEVR, on the ground, as the camera sees them.
    length = math.hypot(camera[0], camera[1])
    behind = (across * camera[0] + along * camera[1]) / length
    left = (across * camera[1] - along * camera[0]) / length
    return abs(behind) > MARGIN and abs(left) > MARGIN
