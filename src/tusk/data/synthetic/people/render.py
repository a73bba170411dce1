"""Round cones and ellipsoids seen through a pinhole, shaded: analytic intersections and a z-buffer.

Camera coordinates: x right, y down, z away from the viewer, metres. A ray is depth * (u, v, 1), so what the z-buffer
holds is the depth itself. Only additions, multiplications, divisions and square roots reach the pixels, each rounded
alike on every machine, and nothing is summed in an order that could vary: the same shapes give the same bytes anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import UInt8Array

Array = npt.NDArray[np.float64]
WHITE = 255


def dot(a: Array, b: Array) -> float:
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


@dataclass(frozen=True)
class RoundCone:
    """The hull of two balls (a capsule where they are equal), neither of which holds the other.

    With a `flatness` below 1 it is squashed to that share of its thickness along `thin`: space is stretched along it by
    1 / flatness, and there it is a round cone. `thin` is best at right angles to the axis.
    """

    start: Array  # (3,)
    end: Array  # (3,)
    start_radius: float
    end_radius: float
    colour: Array  # (3,) red, green, blue in 0..1
    thin: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))  # (3,) unit vector
    flatness: float = 1.0

    def __post_init__(self) -> None:
        axis = self.stretched(self.end - self.start)
        if dot(axis, axis) <= (self.start_radius - self.end_radius) ** 2:
            raise ValueError("one end of a round cone holds the other")

    def stretched(self, vector: Array) -> Array:
        """The vector in the space where this is a round cone."""
        return vector + ((1.0 / self.flatness - 1.0) * dot(vector, self.thin)) * self.thin


@dataclass(frozen=True)
class Ellipsoid:
    centre: Array  # (3,)
    axes: Array  # (3, 3), the columns are its three directions, orthonormal
    radii: Array  # (3,) along those directions
    colour: Array  # (3,)


Shape = RoundCone | Ellipsoid


@dataclass(frozen=True)
class Camera:
    """A pinhole: pixel x = focal * X / Z + centre_x, and likewise y, pixel centres at whole numbers."""

    focal: float
    centre_x: float
    centre_y: float
    size: int

    def project(self, points: Array) -> Array:
        """(N, 3) -> (N, 2) in pixels."""
        centre: Array = np.array([self.centre_x, self.centre_y])
        return self.focal * points[:, :2] / points[:, 2:] + centre


@dataclass(frozen=True)
class Light:
    towards: Array  # (3,) unit vector from the scene to the lamp
    up: Array  # (3,) unit vector: the sky, where ambient light comes from
    strength: float  # of the lamp
    ambient: float


@dataclass(frozen=True)
class Rendering:
    image: UInt8Array  # (size, size, 3), white where there is nothing
    mask: UInt8Array  # (size, size), 1 where at least half of the pixel is covered


def _half_extent(
    offset: float, depth: float, cross: float, variance: float, depth_variance: float
) -> tuple[float, float]:
    """Where an ellipsoid's outline begins and ends on one image axis: the roots of its dual conic there."""
    a, b, c = depth_variance - depth * depth, cross - offset * depth, variance - offset * offset
    if a >= 0:  # it reaches behind the eye: no bound
        return -np.inf, np.inf
    root = np.sqrt(max(b * b - a * c, 0.0))
    return (b + root) / a, (b - root) / a


def bounds(shape: Shape) -> tuple[float, float, float, float]:
    """The exact (left, top, right, bottom) of a shape's outline, in units of the focal length."""
    if isinstance(shape, Ellipsoid):
        return _ellipsoid_bounds(shape.centre, shape.axes * shape.radii)
    # A hull's outline is the hull of the outlines; a ball that is squashed is its centre and three half axes.
    squash = np.identity(3) - (1.0 - shape.flatness) * shape.thin[:, None] * shape.thin
    first = _ellipsoid_bounds(shape.start, shape.start_radius * squash)
    second = _ellipsoid_bounds(shape.end, shape.end_radius * squash)
    return min(first[0], second[0]), min(first[1], second[1]), max(first[2], second[2]), max(first[3], second[3])


def _ellipsoid_bounds(centre: Array, half_axes: Array) -> tuple[float, float, float, float]:
    x, y, z = (float(value) for value in centre)
    across, along, away = half_axes
    left, right = _half_extent(x, z, dot(across, away), dot(across, across), dot(away, away))
    top, bottom = _half_extent(y, z, dot(along, away), dot(along, along), dot(away, away))
    return left, top, right, bottom


def depths(shape: Shape, u: Array, v: Array) -> Array:
    """How far away each ray (u, v, 1) first meets the shape; inf where it misses. u and v broadcast."""
    with np.errstate(
        invalid="ignore", divide="ignore"
    ):  # a miss is the root of a negative number: NaN, hence inf below
        depth = _cone_depths(shape, u, v) if isinstance(shape, RoundCone) else _ellipsoid_depths(shape, u, v)
    return np.where(depth > 0, depth, np.inf)


def _ellipsoid_depths(shape: Ellipsoid, u: Array, v: Array) -> Array:
    # In the frame where the ellipsoid is the unit ball.
    to_ball = shape.axes / shape.radii
    centre = [dot(shape.centre, to_ball[:, k]) for k in range(3)]
    ray = [_along_rays(to_ball[:, k], u, v) for k in range(3)]
    a = ray[0] * ray[0] + ray[1] * ray[1] + ray[2] * ray[2]
    b = ray[0] * centre[0] + ray[1] * centre[1] + ray[2] * centre[2]
    c = centre[0] * centre[0] + centre[1] * centre[1] + centre[2] * centre[2] - 1.0
    return np.asarray((b - np.sqrt(b * b - a * c)) / a)


def _along_rays(vector: Array, u: Array, v: Array) -> Array:
    return np.asarray(u * vector[0] + (v * vector[1] + vector[2]))


def _cone_depths(shape: RoundCone, u: Array, v: Array) -> Array:
    """The first of three meetings: with either ball, or with the cone that touches both, between its touching circles.

    With y along the axis from the start and k = sine of the cone's half angle, the cone is
    (1 - k²)|q|² - y² + 2 k r y - r² = 0, and the ball that touches it at q is centred at (y - k r) / (1 - k²).
    """
    start, end = shape.stretched(shape.start), shape.stretched(shape.end)
    axis = end - start
    length = float(np.sqrt(dot(axis, axis)))
    axis = axis / length
    radius, sine = shape.start_radius, (shape.start_radius - shape.end_radius) / length
    cosine2 = 1.0 - sine * sine
    # The stretch is symmetric: a stretched ray times a vector is the ray times the stretched vector.
    ray_start, ray_end, ray_axis = (_along_rays(shape.stretched(vector), u, v) for vector in (start, end, axis))
    ray2 = u * u + (v * v + 1.0)
    if shape.flatness != 1.0:
        thin = _along_rays(shape.thin, u, v)
        ray2 = ray2 + (1.0 / (shape.flatness * shape.flatness) - 1.0) * (thin * thin)
    start2, end2, start_axis = dot(start, start), dot(end, end), dot(start, axis)

    near = (ray_start - np.sqrt(ray_start * ray_start - ray2 * (start2 - radius * radius))) / ray2
    far = (ray_end - np.sqrt(ray_end * ray_end - ray2 * (end2 - shape.end_radius * shape.end_radius))) / ray2
    a = cosine2 * ray2 - ray_axis * ray_axis
    b = cosine2 * ray_start - ray_axis * (start_axis + sine * radius)
    c = cosine2 * start2 - start_axis * start_axis - 2.0 * sine * radius * start_axis - radius * radius
    side = (b - np.sqrt(b * b - a * c)) / a
    along = side * ray_axis - (start_axis + sine * radius)
    side = np.where((along >= 0) & (along <= length * cosine2) & (side > 0), side, np.nan)
    return np.asarray(np.fmin(np.fmin(near, far), side))


def normals(shape: Shape, x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """The outward unit normal at points (x, y, z) of the shape's surface."""
    if isinstance(shape, RoundCone):
        start, end = shape.stretched(shape.start), shape.stretched(shape.end)
        axis = end - start
        length = float(np.sqrt(dot(axis, axis)))
        axis = axis / length
        sine = (shape.start_radius - shape.end_radius) / length
        more = (1.0 / shape.flatness - 1.0) * (x * shape.thin[0] + y * shape.thin[1] + z * shape.thin[2])
        local = [p + more * shape.thin[k] for k, p in enumerate((x, y, z))]
        along = local[0] * axis[0] + local[1] * axis[1] + local[2] * axis[2] - dot(start, axis)
        # The centre of the ball of the hull that touches the surface at this point.
        along = np.clip((along - sine * shape.start_radius) / (1.0 - sine * sine), 0.0, length)
        out = [p - (start[k] + along * axis[k]) for k, p in enumerate(local)]
        more = (1.0 / shape.flatness - 1.0) * (out[0] * shape.thin[0] + out[1] * shape.thin[1] + out[2] * shape.thin[2])
        out = [p + more * shape.thin[k] for k, p in enumerate(out)]
    else:
        inverse = (shape.axes / (shape.radii * shape.radii))[:, None, :] * shape.axes[None, :, :]
        form = inverse[:, :, 0] + inverse[:, :, 1] + inverse[:, :, 2]  # the surface is q' form q = 1
        q = [p - shape.centre[k] for k, p in enumerate((x, y, z))]
        out = [form[k, 0] * q[0] + form[k, 1] * q[1] + form[k, 2] * q[2] for k in range(3)]
    size = np.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2])
    return out[0] / size, out[1] / size, out[2] / size


def render(shapes: list[Shape], camera: Camera, light: Light, samples: int = 3) -> Rendering:
    """The shapes on white, each pixel the mean of samples x samples rays."""
    fine = camera.size * samples
    # Sample j of the fine grid lies at pixel (j + 0.5) / samples - 0.5.
    pixels = (np.arange(fine) + 0.5) / samples - 0.5
    u, v = (pixels - camera.centre_x) / camera.focal, (pixels - camera.centre_y) / camera.focal
    depth = np.full((fine, fine), np.inf)
    owner = np.full((fine, fine), -1, dtype=np.int16)
    for number, shape in enumerate(shapes):
        left, top, right, bottom = bounds(shape)
        # One sample more on each side: a bound that is rounded must not cut a ray off.
        rows = slice(max(int(np.searchsorted(v, top)) - 1, 0), int(np.searchsorted(v, bottom)) + 1)
        columns = slice(max(int(np.searchsorted(u, left)) - 1, 0), int(np.searchsorted(u, right)) + 1)
        found = depths(shape, u[None, columns], v[rows, None])
        nearer = found < depth[rows, columns]
        np.copyto(depth[rows, columns], found, where=nearer)
        owner[rows, columns][nearer] = number
    return shade(shapes, light, depth, owner, u, v, samples)


def shade(
    shapes: list[Shape], light: Light, depth: Array, owner: npt.NDArray[np.int16], u: Array, v: Array, samples: int
) -> Rendering:
    """Pixels from what the z-buffer holds: which shape is seen in each sample (-1: none), and how far away."""
    rows, columns = np.nonzero(owner >= 0)
    # Grouped by owner, so that each shape's normals are taken at once.
    owners = owner[rows, columns]
    order = np.argsort(owners, kind="stable")
    rows, columns, owners = rows[order], columns[order], owners[order]
    z = depth[rows, columns]
    x, y = u[columns] * z, v[rows] * z
    values = np.empty((len(z), 3), dtype=np.uint8)
    edges = np.searchsorted(owners, np.arange(len(shapes) + 1))
    for number, shape in enumerate(shapes):
        part = slice(int(edges[number]), int(edges[number + 1]))
        if part.start == part.stop:
            continue
        nx, ny, nz = normals(shape, x[part], y[part], z[part])
        lamp = nx * light.towards[0] + ny * light.towards[1] + nz * light.towards[2]
        sky = nx * light.up[0] + ny * light.up[1] + nz * light.up[2]
        brightness = light.strength * np.maximum(lamp, 0.0) + light.ambient * (0.75 + 0.25 * sky)
        for channel in range(3):
            shaded = np.minimum(brightness * (shape.colour[channel] * WHITE), WHITE) + 0.5
            values[part, channel] = shaded.astype(np.uint8)
    canvas = np.full((len(v), len(u), 3), WHITE, dtype=np.uint8)
    canvas[rows, columns] = values
    count = samples * samples
    image = ((2 * _pixel_sums(canvas, samples) + count) // (2 * count)).astype(np.uint8)
    covered = _pixel_sums((owner >= 0)[:, :, None], samples)[:, :, 0]
    return Rendering(image, (2 * covered >= count).astype(np.uint8))


def _pixel_sums(fine: npt.NDArray[np.uint8] | npt.NDArray[np.bool_], samples: int) -> npt.NDArray[np.uint32]:
    """The sum of each pixel's samples, in whole numbers: alike in any order."""
    total = np.zeros((fine.shape[0] // samples, fine.shape[1] // samples, fine.shape[2]), dtype=np.uint32)
    for row in range(samples):
        for column in range(samples):
            total += fine[row::samples, column::samples]
    return total
