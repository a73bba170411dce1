"""Which place of a turned volume each pixel sees, and how the light falls there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.faces.shape import EMPTY, STEP, Rotation, Vector, Volume

BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.intp]
FINE_STEPS = 4


@dataclass(frozen=True)
class Light:
    direction: Vector  # unit length: right, down, towards the viewer
    colour: Vector  # of the light itself, about 1
    ambient: Vector  # of what reaches the shadows


@dataclass(frozen=True)
class Hits:
    """Where N of the rays meet a volume."""

    ray: IndexArray  # (N,) which rays
    place: IndexArray  # (N,) index into the flattened height maps
    x: Float32Array  # (N,) head coordinates of the place
    y: Float32Array
    z: Float32Array
    depth: Float32Array  # (N,) how near to the viewer

    def pick(self, which: IndexArray) -> Hits:
        x, y, z, depth = (part.take(which) for part in (self.x, self.y, self.z, self.depth))
        return Hits(self.ray.take(which), self.place.take(which), x, y, z, depth)


def trace(volume: Volume, rotation: Rotation, right: Float32Array, down: Float32Array, steps: int) -> Hits:
    """Follow a ray from the viewer through each (right, down), in head units, until it is inside of the volume.

    A part of the volume that is thinner than 1/steps of its depth, seen along the ray, can be missed.
    """
    seen = rotation.project(volume.points(5))
    low, high = seen.min(axis=0) - 0.08, seen.max(axis=0) + 0.08
    ray = np.nonzero((right > low[0]) & (right < high[0]) & (down > low[1]) & (down < high[1]))[0]
    right, down = right.take(ray), down.take(ray)
    (a, b, c), (d, e, f), (g, h, i) = rotation.rows
    x, y, z = a * right + d * down, b * right + e * down, c * right + f * down
    rows, columns = volume.front.shape
    front, back = volume.front.ravel(), volume.back.ravel()

    def sample(
        x: Float32Array, y: Float32Array, z: Float32Array, depth: float | Float32Array
    ) -> tuple[BoolArray, IndexArray]:
        column = (x + (g * depth - (volume.left - STEP / 2))) * (1 / STEP)
        row = (y + (h * depth - (volume.top - STEP / 2))) * (1 / STEP)
        place = np.clip(row, 0, rows - 1).astype(np.intp) * columns + np.clip(column, 0, columns - 1).astype(np.intp)
        height = z + i * depth
        return (height < front.take(place)) & (height > back.take(place)), place

    nearest, farthest = float(high[2]), max(float(low[2]), -0.75)
    stride = (nearest - farthest) / steps
    rays: list[IndexArray] = []
    starts: list[tuple[Float32Array, Float32Array, Float32Array, Float32Array]] = []
    for step in range(1, steps + 1):
        depth = nearest - step * stride
        within = sample(x, y, z, depth)[0]
        if within.any():
            found, rest = np.nonzero(within)[0], np.nonzero(~within)[0]
            rays.append(ray.take(found))
            starts.append((x.take(found), y.take(found), z.take(found), np.full(found.shape, depth, np.float32)))
            # Most rays end early; the others go on without them.
            ray, x, y, z = ray.take(rest), x.take(rest), y.take(rest), z.take(rest)
    if not rays:
        nothing = np.zeros(0, np.float32)
        return Hits(ray[:0], ray[:0], nothing, nothing, nothing, nothing)
    ray = np.concatenate(rays)
    x, y, z, inside = (np.concatenate(parts) for parts in zip(*starts, strict=True))
    # The surface lies within one stride in front of the place that was found to be inside.
    outside = inside + np.float32(stride)
    for _ in range(FINE_STEPS):
        middle = (inside + outside) * np.float32(0.5)
        within = sample(x, y, z, middle)[0]
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    place = sample(x, y, z, inside)[1]
    x, y, z = (np.asarray(v + k * inside, dtype=np.float32) for v, k in ((x, g), (y, h), (z, i)))
    return Hits(ray, place, x, y, z, inside)


def shade(volume: Volume, hits: Hits, rotation: Rotation, light: Light) -> tuple[Float32Array, Float32Array]:
    """How bright each hit is lit: (N,) the part of the direct light, (N,) a soft gloss."""
    steep = 5.0
    surface = np.where(volume.front > EMPTY, volume.front, 0)  # every shape falls to 0 at its rim
    slope_x, slope_y = np.zeros_like(surface), np.zeros_like(surface)
    slope_x[:, 1:-1] = (surface[:, 2:] - surface[:, :-2]) * (1 / (2 * STEP))
    slope_y[1:-1] = (surface[2:] - surface[:-2]) * (1 / (2 * STEP))
    nx = -np.clip(slope_x.ravel().take(hits.place), -steep, steep)
    ny = -np.clip(slope_y.ravel().take(hits.place), -steep, steep)
    front, back = volume.front.ravel().take(hits.place), volume.back.ravel().take(hits.place)
    # Behind the widest place the surface looks backwards.
    nz = np.clip((hits.z + hits.z - front - back) * 5 + 1, -1, 1)
    length = 1 / np.sqrt(nx * nx + ny * ny + nz * nz + 1e-6)
    lx, ly, lz = rotation.into_head(light.direction)
    facing = (nx * lx + ny * ly + nz * lz) * length
    # Light scatters within skin and hair, so that it reaches a little around the edge.
    direct = np.clip((facing + 0.2) * (1 / 1.2), 0, 1)
    vx, vy, vz = rotation.into_head((0.0, 0.0, 1.0))
    hx, hy, hz = lx + vx, ly + vy, lz + vz
    scale = 1 / math.sqrt(hx * hx + hy * hy + hz * hz)
    gloss = np.maximum((nx * hx + ny * hy + nz * hz) * length * scale, 0)
    for _ in range(4):
        gloss = gloss * gloss
    return direct, gloss


def lit(colours: Float32Array, direct: Float32Array, light: Light) -> Float32Array:
    """(N, 3) colours under the light."""
    return colours * (np.array(light.ambient, np.float32) + direct[:, None] * np.array(light.colour, np.float32))
