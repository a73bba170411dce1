from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tusk.data.synthetic.people.render import (
    Camera,
    Ellipsoid,
    Light,
    RoundCone,
    Shape,
    bounds,
    depths,
    normals,
    render,
    shade,
)

GREY = np.array([0.5, 0.5, 0.5])
FRONTAL = Light(np.array([0.0, 0.0, -1.0]), np.array([0.0, -1.0, 0.0]), strength=0.6, ambient=0.3)
unit = st.floats(-1, 1, allow_nan=False)
radius = st.floats(0.05, 0.6)


def rotation(seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    centre = np.array([draw(unit), draw(unit), 4 + draw(unit)])
    turned = rotation(draw(st.integers(0, 10_000)))
    if draw(st.booleans()):
        return Ellipsoid(centre, turned, np.array([draw(radius), draw(radius), draw(radius)]), GREY)
    first, second, flatness = draw(radius), draw(radius), draw(st.sampled_from([1.0, 1.0, 0.7, 0.4]))
    length = abs(first - second) * 1.05 + draw(st.floats(0.02, 1.2))
    # Flattened at right angles to the axis, as the body's are.
    return RoundCone(centre, centre + length * turned[:, 0], first, second, GREY, turned[:, 1], flatness)


def lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a convex function is least, by thirds."""
    for _ in range(52):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if function(a) < function(b) else (a, high)
    return (low + high) / 2


def outside(shape: Shape, point: np.ndarray) -> float:
    """A convex function that is zero on the surface, from nothing but what the shape is said to be."""
    if isinstance(shape, Ellipsoid):
        return float((((point - shape.centre) @ shape.axes / shape.radii) ** 2).sum()) - 1
    across = float((point - shape.start) @ shape.thin)

    def from_ball(share: float) -> float:
        away = point - (shape.start + share * (shape.end - shape.start))
        stretched2 = float(away @ away) + across * across * (1 / shape.flatness**2 - 1)
        return math.sqrt(stretched2) - (shape.start_radius + share * (shape.end_radius - shape.start_radius))

    return from_ball(lowest(from_ball, 0.0, 1.0))


def reference_depth(shape: Shape, u: float, v: float) -> tuple[float, float]:
    """Depth of the first meeting (inf: none), and how deep the ray goes inside at most."""
    ray = np.array([u, v, 1.0])
    inside = lowest(lambda depth: outside(shape, depth * ray), 0.0, 8.0)
    deepest = outside(shape, inside * ray)
    if deepest > 0:
        return math.inf, deepest
    low, high = 0.0, inside
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(shape, middle * ray) > 0 else (low, middle)
    return (low + high) / 2, deepest


@settings(max_examples=60, deadline=None)
@given(shapes(), unit, unit)
def test_depth_and_normal_against_a_slow_reference(shape: Shape, right: float, down: float) -> None:
    left, top, r, bottom = bounds(shape)
    # Aimed at the outline's box, a little beyond it: hits and misses both.
    u = (left + r) / 2 + 0.55 * right * (r - left)
    v = (top + bottom) / 2 + 0.55 * down * (bottom - top)
    expected, deepest = reference_depth(shape, u, v)
    assume(abs(deepest) > 1e-6)  # neither answer is wrong for a ray that only grazes
    found = float(depths(shape, np.array([u]), np.array([v]))[0])
    assert found == pytest.approx(expected, abs=1e-5)
    if math.isinf(expected):
        return
    hit = found * np.array([u, v, 1.0])
    step = 1e-4
    slope = np.array([outside(shape, hit + step * e) - outside(shape, hit - step * e) for e in np.identity(3)])
    normal = np.array(normals(shape, *(np.array([value]) for value in hit)))[:, 0]
    np.testing.assert_allclose(normal, slope / np.linalg.norm(slope), atol=2e-2 if min_radius(shape) < 0.1 else 5e-3)


def min_radius(shape: Shape) -> float:
    if isinstance(shape, Ellipsoid):
        return float(shape.radii.min())
    return min(shape.start_radius, shape.end_radius) * shape.flatness


@settings(max_examples=60, deadline=None)
@given(shapes())
def test_bounds_hold_the_outline_and_touch_it(shape: Shape) -> None:
    left, top, right, bottom = bounds(shape)
    steps = 240
    u = np.linspace(left - 0.1 * (right - left), right + 0.1 * (right - left), steps)
    v = np.linspace(top - 0.1 * (bottom - top), bottom + 0.1 * (bottom - top), steps)
    hit_v, hit_u = np.nonzero(np.isfinite(depths(shape, u[None, :], v[:, None])))
    assert u[hit_u].min() >= left - 1e-9 and u[hit_u].max() <= right + 1e-9
    assert v[hit_v].min() >= top - 1e-9 and v[hit_v].max() <= bottom + 1e-9
    near_u, near_v = 0.03 * (right - left), 0.03 * (bottom - top)
    assert u[hit_u].min() - left < near_u and right - u[hit_u].max() < near_u
    assert v[hit_v].min() - top < near_v and bottom - v[hit_v].max() < near_v


@settings(max_examples=40, deadline=None)
@given(st.lists(shapes(), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_z_buffer_equals_every_ray_against_every_shape(many: list[Shape], random: object) -> None:
    camera, samples = Camera(40.0, 15.5, 15.5, 32), 2
    pixels = (np.arange(64) + 0.5) / samples - 0.5
    u, v = (pixels - camera.centre_x) / camera.focal, (pixels - camera.centre_y) / camera.focal
    every = np.stack([depths(shape, u[None, :], v[:, None]) for shape in many])
    owner = np.where(np.isfinite(every.min(axis=0)), every.argmin(axis=0), -1).astype(np.int16)
    expected = shade(many, FRONTAL, every.min(axis=0), owner, u, v, samples)
    found = render(many, camera, FRONTAL, samples)
    np.testing.assert_array_equal(found.image, expected.image)
    np.testing.assert_array_equal(found.mask, expected.mask)
    shuffled = list(many)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(render(shuffled, camera, FRONTAL, samples).mask, found.mask)


def test_a_ball_is_where_the_pinhole_says() -> None:
    ball = Ellipsoid(np.array([0.3, -0.2, 5.0]), np.identity(3), np.array([0.5, 0.5, 0.5]), np.array([1.0, 0.5, 0.25]))
    camera = Camera(300.0, 50.0, 60.0, 112)
    seen = render([ball], camera, FRONTAL)
    x, y = camera.project(ball.centre[None])[0]
    assert (x, y) == pytest.approx((50 + 18, 60 - 12))
    ys, xs = np.nonzero(seen.mask)
    assert (xs.mean(), ys.mean()) == pytest.approx((x, y), abs=0.3)
    assert seen.mask.sum() == pytest.approx(math.pi * (300 * 0.5 / math.sqrt(25 - 0.25)) ** 2, rel=0.02)
    # Lambert: full lamp and three quarters of the ambient light where the ball faces the lamp.
    assert seen.image[round(y), round(x)] == pytest.approx(255 * (0.6 + 0.225) * ball.colour, abs=2)
    assert (seen.image[seen.mask == 0][:, 0] > 127).all()
    assert (seen.image[:, :30] == 255).all()


def test_edges_are_smooth_and_nearer_hides_farther() -> None:
    near = RoundCone(np.array([-0.5, 0.0, 3.0]), np.array([0.5, 0.1, 3.0]), 0.2, 0.1, np.array([1.0, 0.0, 0.0]))
    far = Ellipsoid(np.array([0.0, 0.0, 4.0]), np.identity(3), np.array([0.7, 0.7, 0.3]), np.array([0.0, 0.0, 1.0]))
    camera = Camera(100.0, 31.5, 31.5, 64)
    for order in ([near, far], [far, near]):
        image = render(order, camera, FRONTAL).image
        assert image[32, 32, 0] > 150 and image[32, 32, 2] == 0
        assert image[20, 32, 2] > 150 and image[20, 32, 0] == 0
    edge = render([far], camera, FRONTAL).image[:, :, 0]
    assert ((edge > 0) & (edge < 255)).sum() > 60, "blue on white has mixed pixels all along its outline"


def test_the_lit_side_is_brighter() -> None:
    ball = Ellipsoid(np.array([0.0, 0.0, 4.0]), np.identity(3), np.array([1.0, 1.0, 1.0]), GREY)
    from_left = Light(np.array([-0.8, 0.0, -0.6]), np.array([0.0, -1.0, 0.0]), 0.7, 0.3)
    image = render([ball], Camera(100.0, 31.5, 31.5, 64), from_left).image.astype(int)
    assert image[32, 14, 0] > image[32, 48, 0] + 40
    assert image[12, 40, 0] > image[52, 40, 0], "more ambient light comes from above"


def test_an_end_inside_the_other_is_refused() -> None:
    with pytest.raises(ValueError, match="holds the other"):
        RoundCone(np.zeros(3), np.array([0.1, 0.0, 0.0]), 0.5, 0.3, GREY)


def test_what_reaches_behind_the_eye_is_unbounded() -> None:
    around = Ellipsoid(np.array([0.0, 0.0, 0.5]), np.identity(3), np.ones(3), GREY)
    assert bounds(around) == (-math.inf, -math.inf, math.inf, math.inf)
