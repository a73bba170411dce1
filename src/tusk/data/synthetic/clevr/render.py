"""Draws a CLEVR scene: camera, first hits, antialiasing.

The view is the one that papers on object discovery crop from CLEVR: rows 29..221 and columns 64..256 of 240 x 320.
All arithmetic on rays is float32 and made of +, -, *, / and square roots, which every machine rounds alike, in a fixed
order. The exceptions are few numbers per scene: the sines and cosines of the rotations, and lengths from `math.hypot`.
They could differ in the last bit between mathematics libraries; then a pixel might in principle differ by one level, an
edge pixel change its owner, or a scene at the very limit of visibility be drawn anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tusk.data.dataset import Float32Array, Int64Array, UInt8Array
from tusk.data.synthetic.clevr.light import lamps_of
from tusk.data.synthetic.clevr.scene import METAL, Scene, Vector
from tusk.data.synthetic.clevr.shade import PALETTE, shade
from tusk.data.synthetic.clevr.shapes import Body, BoolArray
from tusk.data.synthetic.clevr.trace import Stage, nearest_things, trace

# For a picture of 128 pixels: lens 35 mm on a sensor of 32 mm over 214 pixels, of which 128 x 128 are kept.
BASE_SIZE = 128
FOCAL = 214 * 35 / 32
MIDDLE_X, MIDDLE_Y = 107 - 43, 80 - 19  # where the view's axis meets the picture, from its top-left corner
SHADOW_GRID, MIRROR_SHADOW_GRID = 4, 2
CONTRAST = 0.08  # pixels that differ more than this from a neighbour (on a scale of brightness 0..1) are refined
# Four places within a pixel, no two in a row or column.
REFINE = ((-0.125, -0.375), (0.375, -0.125), (-0.375, 0.125), (0.125, 0.375))
FILM = 0.08  # share of its light that a pixel gives to the next on either side: the originals' film is as soft
TONES = 4096


@dataclass(frozen=True)
class Camera:
    place: Float32Array  # (3, 1)
    right: Float32Array
    down: Float32Array
    ahead: Float32Array
    size: int  # of the picture, in pixels

    @staticmethod
    def of(position: Vector, size: int) -> Camera:
        """A camera that looks at the origin with its top upwards."""
        x, y, z = position
        distance, level = math.sqrt(x * x + y * y + z * z), math.hypot(x, y)
        ahead = (-x / distance, -y / distance, -z / distance)
        right = (-y / level, x / level, 0.0)
        down = (right[1] * -ahead[2], right[0] * ahead[2], right[0] * -ahead[1] + right[1] * ahead[0])
        return Camera(_column(position), _column(right), _column(down), _column(ahead), size)

    @property
    def focal(self) -> float:
        return FOCAL * self.size / BASE_SIZE

    @property
    def middle(self) -> tuple[float, float]:
        """Where the axis meets the picture; (0, 0) is the centre of the top-left pixel."""
        return MIDDLE_X * self.size / BASE_SIZE - 0.5, MIDDLE_Y * self.size / BASE_SIZE - 0.5

    def rays(self, x: Float32Array, y: Float32Array) -> Float32Array:
        """Unit directions (3, n) through places in the picture."""
        middle_x, middle_y = self.middle
        across = (x - np.float32(middle_x)) / np.float32(self.focal)
        below = (y - np.float32(middle_y)) / np.float32(self.focal)
        directions = self.ahead + across * self.right + below * self.down
        lengths: Float32Array = np.sqrt(_ONE + across * across + below * below)
        rays: Float32Array = directions / lengths
        return rays

    def project(self, points: Float32Array) -> Float32Array:
        """Where points (3, n) appear in the picture: (n, 2) x, y."""
        apart = points - self.place
        across, below, depth = (
            apart[0] * axis[0] + apart[1] * axis[1] + apart[2] * axis[2] for axis in (self.right, self.down, self.ahead)
        )
        middle = np.array(self.middle, dtype=np.float32)
        places: Float32Array = (np.stack([across, below]) / depth * np.float32(self.focal)).T + middle
        return places


def _column(vector: Vector) -> Float32Array:
    return np.array(vector, dtype=np.float32)[:, None]


_ONE = np.float32(1.0)


def stage_of(scene: Scene, camera: Camera, *, cull: bool = True) -> Stage:
    return Stage(
        bodies=tuple(Body.of(thing) for thing in scene.things),
        colours=PALETTE[[thing.color for thing in scene.things]].reshape(-1, 3),
        metal=np.array([thing.material == METAL for thing in scene.things], dtype=np.bool_),
        lamps=lamps_of(scene, SHADOW_GRID),
        mirror_lamps=lamps_of(scene, MIRROR_SHADOW_GRID),
        eye=camera.place,
        pixel=1 / camera.focal,
        cull=cull,
    )


def centres(scene: Scene, size: int) -> Float32Array:
    """Where the centres of the things appear: (things, 2) x, y."""
    points = np.array([thing.centre for thing in scene.things], dtype=np.float32).reshape(-1, 3).T
    return Camera.of(scene.camera, size).project(points)


def draw_mask(scene: Scene, size: int) -> UInt8Array:
    """(size, size): 0 where the ray through a pixel's centre meets no thing, i where it meets thing i - 1."""
    camera = Camera.of(scene.camera, size)
    rows, columns = _grid(size)
    owners, _ = nearest_things(stage_of(scene, camera), camera.place, camera.rays(columns, rows))
    return (owners + 1).astype(np.uint8).reshape(size, size)


def draw(scene: Scene, size: int, *, cull: bool = True) -> UInt8Array:
    """(size, size, 3) uint8 RGB. `cull=False` tests every ray against every thing: slower, and equal."""
    camera = Camera.of(scene.camera, size)
    stage = stage_of(scene, camera, cull=cull)
    rows, columns = _grid(size)
    hits = trace(stage, camera.place, camera.rays(columns, rows))
    light = shade(stage, hits)
    refined = np.flatnonzero(_uneven(light.reshape(3, size, size), hits.owners.reshape(size, size)).ravel())
    if refined.size:
        x = np.concatenate([columns[refined] + np.float32(step) for step, _ in REFINE])
        y = np.concatenate([rows[refined] + np.float32(step) for _, step in REFINE])
        parts = shade(stage, trace(stage, camera.place, camera.rays(x, y))).reshape(3, len(REFINE), refined.size)
        light[:, refined] = (parts[:, 0] + parts[:, 1] + parts[:, 2] + parts[:, 3]) * np.float32(0.25)
    film = _soften(light.reshape(3, size, size))
    return np.ascontiguousarray(_tones()[_root(film)].transpose(1, 2, 0))


def _grid(size: int) -> tuple[Float32Array, Float32Array]:
    rows, columns = np.divmod(np.arange(size * size), size)
    return rows.astype(np.float32), columns.astype(np.float32)


def _soften(light: Float32Array) -> Float32Array:
    """Lets each pixel share its light with its neighbours, along columns and then along rows."""
    for before, after in ((np.s_[:, :-2], np.s_[:, 2:]), (np.s_[:, :, :-2], np.s_[:, :, 2:])):
        axis = len(before)
        pad = [(0, 0)] * 3
        pad[axis - 1] = (1, 1)
        wider = np.pad(light, pad, mode="edge")
        light = np.float32(1 - 2 * FILM) * light + np.float32(FILM) * (wider[before] + wider[after])
    return light


def _root(light: Float32Array) -> Int64Array:
    """Square roots of linear light, in steps: close to even steps of seen brightness."""
    return (np.sqrt(np.clip(light, np.float32(0.0), _ONE)) * np.float32(TONES - 1)).astype(np.int64)


def _tones() -> UInt8Array:
    """What a screen (sRGB) is given for each step of `_root`."""
    linear = ((np.arange(TONES) + 0.5) / TONES) ** 2
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    tones: UInt8Array = np.rint(255 * encoded).astype(np.uint8)
    return tones


def _uneven(light: Float32Array, owners: Int64Array) -> BoolArray:
    """Pixels on an outline or at a step of brightness: those on both of its sides."""
    bright = np.sqrt(np.minimum(light, _ONE))
    uneven = np.zeros(owners.shape, dtype=np.bool_)
    for axis in (0, 1):
        step = (np.abs(np.diff(bright, axis=axis + 1)) > CONTRAST).any(axis=0) | (np.diff(owners, axis=axis) != 0)
        before, after = (slice(None), slice(-1)), (slice(None), slice(1, None))
        uneven[before if axis else before[::-1]] |= step
        uneven[after if axis else after[::-1]] |= step
    return uneven
