"""The lamps of a CLEVR scene, the shadows they throw, and the ground that they light.

The base scene of CLEVR has three square lamps that face the origin, a wide sun, a grey ground that ends under
the camera and curves up into a wall far behind the things, and an even, dim sky in all other directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tusk.data.dataset import Float32Array, Int64Array
from tusk.data.synthetic.clevr.scene import Scene, Vector
from tusk.data.synthetic.clevr.shapes import CULL_SLACK, Body, BoolArray, dot, hidden_share, unit

# Power over 4 (the light on a surface at distance 1 that faces the lamp) times the lamp's colour, and the lamp's side.
# The base scene gives colours, sides and powers; the powers were then fitted, with the shadows, to rendered ground.
KEY = ((22.8, 21.4, 18.4), 0.5)
FILL = ((4.9, 5.3, 6.6), 0.5)
BACK = ((11.45, 11.45, 11.45), 1.0)
SUN = 0.335
SKY = 0.006  # light from every direction where there is nothing
SUN_FROM: Vector = (0.4145, -0.1946, 0.8890)
SUN_SPREAD = 0.1  # radius of the sun's disc at distance 1
SUN_AWAY = 400.0  # as good as infinitely far, and still exact enough in float32

GROUND_ALBEDO = 0.8
# Across the ground, from its edge under the camera towards the wall: the normal of that edge, and its offset.
INWARDS = (-0.9032, 0.4292)
EDGE = 9.545
LENGTH_FROM, LENGTH_TO = -26.6, 29.9  # the ends of the ground along that edge
BEND_AT, BEND = 15.0, 0.0022  # beyond BEND_AT the ground rises as BEND * (s - BEND_AT)^3
FLAT_TO = 27.0  # rays that would meet the plane beyond this are taken to meet the wall
WALL_AT, WALL_TOP = 26.0, 23.0


@dataclass(frozen=True)
class Lamp:
    colour: Float32Array  # (3, 1)
    place: Float32Array  # (3, 1)
    aim: Float32Array  # (3, 1) unit vector from the origin to the lamp
    samples: Float32Array  # (3, s) positions spread over the lamp
    half: float  # the radius of a ball about the lamp that holds all samples
    sun: bool

    def at(self, points: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Unit directions (3, n) from points to the lamp, and what a surface turned to it receives there (n,)."""
        towards = self.place - points
        square = dot(towards, towards)
        distance: Float32Array = np.sqrt(square)
        directions = towards / distance
        if self.sun:
            return directions, np.ones_like(square)
        turned: Float32Array = np.maximum(dot(directions, self.aim), np.float32(0.0))
        return directions, turned / square


def lamps_of(scene: Scene, grid: int) -> tuple[Lamp, ...]:
    """The four lamps, each with grid * grid sample positions for shadows."""
    squares = ((scene.key_lamp, KEY), (scene.fill_lamp, FILL), (scene.back_lamp, BACK))
    lamps = [_lamp(place, colour, side, grid, sun=False) for place, (colour, side) in squares]
    sun = (SUN_FROM[0] * SUN_AWAY, SUN_FROM[1] * SUN_AWAY, SUN_FROM[2] * SUN_AWAY)
    # A square with the area of the sun's disc: in a shadow the difference is not seen.
    lamps.append(_lamp(sun, (SUN, SUN, SUN), math.sqrt(math.pi) * SUN_SPREAD * SUN_AWAY, grid, sun=True))
    return tuple(lamps)


def _lamp(place: Vector, colour: Vector, side: float, grid: int, *, sun: bool) -> Lamp:
    centre = np.array(place, dtype=np.float64)
    aim = centre / math.sqrt(float((centre * centre).sum()))
    level = np.array([-aim[1], aim[0], 0.0]) / math.hypot(aim[0], aim[1])
    upright = np.array(
        [
            aim[1] * level[2] - aim[2] * level[1],
            aim[2] * level[0] - aim[0] * level[2],
            aim[0] * level[1] - aim[1] * level[0],
        ]
    )
    steps = ((np.arange(grid) + 0.5) / grid - 0.5) * side
    # The grid is sheared by a fraction of its step so that no edge of a shadow runs along a row of samples.
    across = (steps[:, None] + steps[None, :] / grid).ravel()
    along = (steps[None, :] - steps[:, None] / grid).ravel()
    samples = centre[:, None] + level[:, None] * across + upright[:, None] * along
    half = float(np.sqrt((across * across + along * along).max()))
    as_column = [np.asarray(vector, dtype=np.float32)[:, None] for vector in (colour, centre, aim)]
    return Lamp(as_column[0], as_column[1], as_column[2], samples.astype(np.float32), half, sun)


def light_share(
    lamp: Lamp, points: Float32Array, owners: Int64Array, bodies: tuple[Body, ...], *, cull: bool = True
) -> Float32Array:
    """The share (n,) of a lamp that each point sees past all bodies but its own (owner -1: the ground).

    With several bodies before a lamp their shares are multiplied, as if their shadows were independent.
    """
    share = np.ones(points.shape[1], dtype=np.float32)
    for number, body in enumerate(bodies):
        candidates = np.flatnonzero(_within(points, *shadow_bounds(lamp, body))) if cull else np.arange(share.size)
        candidates = candidates[owners[candidates] != number]
        if cull:
            candidates = candidates[_in_beam(lamp, body, points[:, candidates])]
        if candidates.size:
            share[candidates] *= np.float32(1.0) - hidden_share(body, points[:, candidates], lamp.samples)
    return share


def shadow_bounds(lamp: Lamp, body: Body) -> tuple[list[float], list[float]]:
    """Lower and upper limits of the x and y of all points on or above the ground that the body can hide from the lamp.

    A hidden point is s + k (q - s) for a lamp position s, a place q in the body and a k from 1 to where the ray reaches
    the ground; that is linear in each of them, so the limits are at their extremes.
    """
    lowest, top = float(lamp.place[2, 0]) - lamp.half, 2 * float(body.radius)
    if lowest < top + CULL_SLACK:
        return [-math.inf, -math.inf], [math.inf, math.inf]
    longest = lowest / (lowest - top)
    lower, upper = [], []
    for axis in (0, 1):
        source, centre, reach = float(lamp.place[axis, 0]), float(body.centre[axis, 0]), float(body.reach)
        cast, slack = source + longest * (centre - source), longest * reach + (longest - 1) * lamp.half + CULL_SLACK
        lower.append(min(centre - reach, cast - slack))
        upper.append(max(centre + reach, cast + slack))
    return lower, upper


def _within(points: Float32Array, lower: list[float], upper: list[float]) -> BoolArray:
    x, y = points[0], points[1]
    within: BoolArray = (x > lower[0]) & (x < upper[0]) & (y > lower[1]) & (y < upper[1])
    return within


def _in_beam(lamp: Lamp, body: Body, points: Float32Array) -> BoolArray:
    """Whether the beam from each point to the lamp, which widens on its way, touches the ball around the body."""
    towards = lamp.place - points
    distance = np.sqrt(dot(towards, towards))
    apart = body.centre - points
    along = dot(apart, towards) / distance
    aside = dot(apart, apart) - along * along
    reach = body.reach + np.float32(lamp.half) / distance * np.maximum(along + body.reach, np.float32(0.0))
    return (along > -body.reach) & (aside <= reach * reach)


def ground_normals(points: Float32Array) -> Float32Array:
    """Upwards on the flat part, tilted where the ground begins to rise towards the wall."""
    inwards = np.float32(INWARDS[0]) * points[0] + np.float32(INWARDS[1]) * points[1] + np.float32(EDGE)
    climb = np.maximum(inwards - np.float32(BEND_AT), np.float32(0.0))
    slope = np.float32(3.0 * BEND) * climb * climb
    normals = np.stack([np.float32(-INWARDS[0]) * slope, np.float32(-INWARDS[1]) * slope, np.ones_like(slope)])
    return unit(normals)


@dataclass(frozen=True)
class Backdrop:
    """Where rays meet what surrounds the things."""

    points: Float32Array  # (3, n)
    normals: Float32Array  # (3, n)
    visible: BoolArray  # (n,) False where there is nothing but sky


def backdrop(origins: Float32Array, directions: Float32Array) -> Backdrop:
    """The ground or the wall behind it; rays towards neither see the sky."""
    start = np.float32(INWARDS[0]) * origins[0] + np.float32(INWARDS[1]) * origins[1] + np.float32(EDGE)
    speed = np.float32(INWARDS[0]) * directions[0] + np.float32(INWARDS[1]) * directions[1]
    down = -directions[2]
    to_ground = np.where(down > 1e-4, origins[2] / np.maximum(down, np.float32(1e-4)), np.float32(1e4))
    to_wall = np.where(
        speed > 1e-4, (np.float32(WALL_AT) - start) / np.maximum(speed, np.float32(1e-4)), np.float32(1e4)
    )
    inwards = start + speed * to_ground
    wall = inwards > FLAT_TO
    distance: Float32Array = np.where(wall, to_wall, to_ground)
    points = origins + distance * directions
    normals = ground_normals(points)
    facing = np.array([-INWARDS[0], -INWARDS[1], 0.1], dtype=np.float32)[:, None]
    normals = np.where(wall, facing, normals)
    length = np.float32(INWARDS[1]) * points[0] - np.float32(INWARDS[0]) * points[1]
    inside = (length > LENGTH_FROM) & (length < LENGTH_TO) & (distance < 1e3)
    inside &= np.where(wall, points[2] < WALL_TOP, inwards > 0)
    return Backdrop(points, normals, inside)
