"""Where rays meet spheres, cubes and cylinders with rounded edges; everything in float32, many rays at once.

Points and directions are arrays (3, n). All bodies are convex, which is used twice: a ray that leaves a body never
meets it again, and the distance to a body along a ray is a convex function, so that Newton's method started in front
of the body walks towards the first hit without ever passing it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.clevr.scene import CUBE, CYLINDER, SPHERE, Thing

BoolArray = npt.NDArray[np.bool_]

# Radius of the rounded edges, of a body of half-height 1: the best fit to the vertices of CLEVR's meshes.
ROUNDING = {CUBE: 0.18, SPHERE: 1.0, CYLINDER: 0.05}
# The radius of a ball about the centre that holds the whole body, even with sharp edges, of half-height 1.
REACH = {CUBE: math.sqrt(3.0), SPHERE: 1.0, CYLINDER: math.sqrt(2.0)}
CULL_SLACK = 1e-3  # added to every bounding ball, so that rounding errors cannot change what is hit
NEWTON_STEPS = 10
HIT = 5e-4  # closer than this (half-height 1) is a hit: a fiftieth of a pixel
LIFT = 0.6  # how far shadows take the underside to be raised, in radii of the rounded edges
FAR = np.float32(np.inf)


@dataclass(frozen=True)
class Body:
    """A thing, made ready for rays."""

    kind: int
    centre: Float32Array  # (3, 1)
    radius: np.float32
    cosine: np.float32  # of its rotation about the vertical
    sine: np.float32

    @staticmethod
    def of(thing: Thing) -> Body:
        centre = np.array(thing.centre, dtype=np.float32)[:, None]
        turn = (np.float32(math.cos(thing.rotation)), np.float32(math.sin(thing.rotation)))
        return Body(thing.shape, centre, np.float32(thing.radius), *turn)

    @property
    def reach(self) -> np.float32:
        return np.float32(float(self.radius) * REACH[self.kind] + CULL_SLACK)

    def points_inside(self, points: Float32Array) -> Float32Array:
        """World points in the body's own frame: centre 0, half-height 1."""
        return self.directions_inside(points - self.centre)

    def directions_inside(self, directions: Float32Array) -> Float32Array:
        x, y, z = directions / self.radius
        return np.stack([self.cosine * x + self.sine * y, self.cosine * y - self.sine * x, z])


def dot(a: Float32Array, b: Float32Array) -> Float32Array:
    """Scalar products of columns, always added in the same order."""
    products: Float32Array = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    return products


def unit(vectors: Float32Array) -> Float32Array:
    lengths: Float32Array = np.sqrt(dot(vectors, vectors))
    return vectors / lengths


def near(body: Body, origins: Float32Array, directions: Float32Array) -> BoolArray:
    """Which rays (unit directions) come near enough to the body to be worth a proper test; never wrong about a hit."""
    towards = body.centre - origins
    along = dot(towards, directions)
    aside = dot(towards, towards) - along * along
    return (aside <= body.reach * body.reach) & (along > -body.reach)


def first_hit(body: Body, origins: Float32Array, directions: Float32Array) -> Float32Array:
    """Distance (n,) along rays (3, n) that start outside the body, infinite where they miss it.

    Distances are in lengths of `directions`; `origins` may be (3, 1).
    """
    inside = np.broadcast_to(body.points_inside(origins), directions.shape)
    heading = body.directions_inside(directions)
    if body.kind == SPHERE:
        return _enter_sphere(inside, heading)
    enter, leave = (_through_box if body.kind == CUBE else _through_cylinder)(inside, heading)
    distance = np.full(enter.shape, FAR, dtype=np.float32)
    candidates = np.flatnonzero((enter <= leave) & (leave > 0))
    start = np.maximum(enter[candidates], np.float32(0.0))
    distance[candidates] = _walk(body.kind, inside[:, candidates], heading[:, candidates], start)
    return distance


def _enter_sphere(inside: Float32Array, heading: Float32Array) -> Float32Array:
    square = dot(heading, heading)
    half = dot(inside, heading)
    # The offset of the closest point is formed first: b*b - a*c would cancel for distant small spheres in float32.
    closest = inside - (half / square) * heading
    room = np.float32(1.0) - dot(closest, closest)
    distance = (-half - np.sqrt(np.maximum(room, np.float32(0.0)) * square)) / square
    return np.where((room >= 0) & (distance > 0), distance, FAR)


def _through_box(inside: Float32Array, heading: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Where lines enter and leave the cube with sharp edges; they miss it where they leave before they enter."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = np.float32(1.0) / heading
        low, high = (-1 - inside) * inverse, (1 - inside) * inverse
    enter = np.minimum(low, high)
    leave = np.maximum(low, high)
    first = np.maximum(np.maximum(enter[0], enter[1]), enter[2])
    last = np.minimum(np.minimum(leave[0], leave[1]), leave[2])
    return first, last


def _through_cylinder(inside: Float32Array, heading: Float32Array) -> tuple[Float32Array, Float32Array]:
    """The same for the cylinder with sharp edges."""
    square = heading[0] * heading[0] + heading[1] * heading[1]
    half = inside[0] * heading[0] + inside[1] * heading[1]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        closest = inside[:2] - (half / square) * heading[:2]
        room = np.float32(1.0) - (closest[0] * closest[0] + closest[1] * closest[1])
        root = np.sqrt(np.maximum(room, np.float32(0.0)) * square)
        inverse = np.float32(1.0) / heading[2]
        low, high = (-1 - inside[2]) * inverse, (1 - inside[2]) * inverse
        first = np.maximum((-half - root) / square, np.minimum(low, high))
        last = np.minimum((root - half) / square, np.maximum(low, high))
    return np.where(room >= 0, first, FAR), last


def _beyond(kind: int, points: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Vectors (3, n) from the body's core (the body without its rounding) to points in its frame, and their lengths."""
    core = np.float32(1.0 - ROUNDING[kind])
    if kind == CYLINDER:
        beyond = np.empty_like(points)
        across = np.sqrt(points[0] * points[0] + points[1] * points[1])
        share = np.maximum(across - core, np.float32(0.0)) / np.maximum(across, np.float32(1e-6))
        beyond[:2] = points[:2] * share
        beyond[2] = points[2] - np.clip(points[2], -core, core)
    elif kind == SPHERE:
        beyond = points
    else:
        beyond = points - np.clip(points, -core, core)
    return beyond, np.sqrt(dot(beyond, beyond))


def _walk(kind: int, inside: Float32Array, heading: Float32Array, start: Float32Array) -> Float32Array:
    """Newton's method from the entry into the sharp-edged body to the rounded one."""
    distance = start.copy()
    rounding = np.float32(ROUNDING[kind])
    missed = np.zeros(start.shape, dtype=np.bool_)
    open_rays = np.arange(start.size)
    for _ in range(NEWTON_STEPS):
        if not open_rays.size:
            break
        direction = heading[:, open_rays]
        beyond, length = _beyond(kind, inside[:, open_rays] + distance[open_rays] * direction)
        gap = length - rounding
        slope = dot(beyond, direction) / np.maximum(length, np.float32(1e-6))
        open_gap = gap > HIT
        away = open_gap & (slope >= 0)
        missed[open_rays[away]] = True
        going = open_gap & ~away
        distance[open_rays[going]] -= gap[going] / slope[going]
        open_rays = open_rays[going]
    missed[open_rays] = True
    distance[missed] = FAR
    return distance


def normals_at(body: Body, points: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Unit normals (3, n) at points on the body, and how sharply the surface bends there (n,), in 1 / length.

    The bend is the larger of the two principal curvatures: it says how far a highlight is spread within a pixel.
    """
    beyond, _ = _beyond(body.kind, body.points_inside(points))
    x, y, z = unit(beyond)
    normals = np.stack([body.cosine * x - body.sine * y, body.cosine * y + body.sine * x, z])
    side = np.float32(1.0) / body.radius
    if body.kind == SPHERE:
        return normals, np.full(points.shape[1], side, dtype=np.float32)
    # On a flat part, or on the straight wall of the cylinder, the way from the core goes along one axis alone.
    edge = np.float32(1.0 / (ROUNDING[body.kind] * float(body.radius)))
    level = np.abs(z)
    slant = np.maximum(np.abs(x), np.abs(y)) if body.kind == CUBE else np.sqrt(x * x + y * y)
    flat = np.float32(0.0) if body.kind == CUBE else np.where(level < 0.5, side, np.float32(0.0))
    return normals, np.where(np.maximum(level, slant) > 0.9999, flat, edge)


def hidden_share(body: Body, points: Float32Array, lamps: Float32Array) -> Float32Array:
    """The share (n,) of the lamp positions (3, s) that the body hides from each point (3, n).

    Edges are taken as sharp here: in a soft shadow the rounding is not seen. Only at the bottom, where it lets light in
    under the body, the underside is raised instead.
    """
    inside = body.points_inside(points)[:, None, :]
    targets = body.points_inside(lamps)[:, :, None]
    if body.kind == SPHERE:
        heading = targets - inside  # (3, s, n)
        # Lamps and points are outside: the segment meets the sphere if its line does, between the two ends.
        square = dot(heading, heading)
        half = dot(inside, heading)
        hit = (half * half > square * (dot(inside, inside) - 1)) & (half < 0)
    else:
        stretch = np.float32(2.0 / (2.0 - ROUNDING[body.kind] * LIFT))
        for places in (inside, targets):
            places[2] = (places[2] - 1) * stretch + 1  # the top stays, the raised underside comes to -1
        enter, leave = (_through_box if body.kind == CUBE else _through_cylinder)(inside, targets - inside)
        hit = (enter <= leave) & (leave > 0) & (enter < 1)
    share: Float32Array = np.count_nonzero(hit, axis=0).astype(np.float32) / np.float32(lamps.shape[1])
    return share
