"""Rays and shadows against slow references that take one ray at a time."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tusk.data.synthetic.clevr.light import lamps_of, light_share, shadow_bounds
from tusk.data.synthetic.clevr.scene import CUBE, CYLINDER, RUBBER, SPHERE, Scene, Thing, draw_scene
from tusk.data.synthetic.clevr.shapes import ROUNDING, Body, first_hit, hidden_share, near, normals_at

LARGE = 1


def thing(shape: int, x: float = 0.0, y: float = 0.0, **changes: float) -> Thing:
    plain = Thing(shape=shape, color=1, size=LARGE, material=RUBBER, x=x, y=y, rotation=0.4)
    return dataclasses.replace(plain, **changes)


def gap_to(body_thing: Thing, point: np.ndarray) -> float:
    """Distance of a point from a thing's surface (negative inside), one point at a time, in plain float64."""
    x, y, z = (np.asarray(point, dtype=np.float64) - body_thing.centre) / body_thing.radius
    c, s = math.cos(body_thing.rotation), math.sin(body_thing.rotation)
    x, y = c * x + s * y, c * y - s * x
    rounding = ROUNDING[body_thing.shape]
    core = 1.0 - rounding
    if body_thing.shape == SPHERE:
        return math.sqrt(x * x + y * y + z * z) - 1.0
    if body_thing.shape == CYLINDER:
        over = [math.hypot(x, y) - core, abs(z) - core]
    else:
        over = [abs(x) - core, abs(y) - core, abs(z) - core]
    outside = math.sqrt(sum(max(value, 0.0) ** 2 for value in over))
    return outside + min(max(over), 0.0) - rounding


def slow_hit(body_thing: Thing, origin: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
    """First hit by halving intervals, and the smallest gap along the ray. The gap is a convex function of the way."""
    low, high = 0.0, 40.0
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if gap_to(body_thing, origin + left * direction) < gap_to(body_thing, origin + right * direction):
            high = right
        else:
            low = left
    closest = low
    smallest = gap_to(body_thing, origin + closest * direction)
    if smallest > 0:
        return math.inf, smallest
    near_end, far_end = 0.0, closest
    for _ in range(60):
        middle = (near_end + far_end) / 2
        if gap_to(body_thing, origin + middle * direction) > 0:
            near_end = middle
        else:
            far_end = middle
    return far_end, smallest


places = st.floats(-3, 3)
angles = st.floats(0, 6.28)
# Rays at the very edges of the sharp-edged bodies pass the rounded ones by: they are worth many examples.
aims = st.floats(-1.3, 1.3) | st.sampled_from([-1.0, -0.97, 0.97, 1.0])


@given(
    shape=st.sampled_from([CUBE, SPHERE, CYLINDER]),
    size=st.integers(0, 1),
    x=places,
    y=places,
    rotation=angles,
    around=angles,
    height=st.floats(0.0, 6.0),
    aim=st.tuples(aims, aims, aims),
)
@settings(max_examples=250, deadline=None)
def test_first_hit_and_normal_against_a_slow_reference(
    shape: int,
    size: int,
    x: float,
    y: float,
    rotation: float,
    around: float,
    height: float,
    aim: tuple[float, float, float],
) -> None:
    body_thing = thing(shape, x, y, size=size, rotation=rotation)
    origin = np.array([x + 7 * math.cos(around), y + 7 * math.sin(around), height])
    c, s = math.cos(rotation), math.sin(rotation)
    turned = np.array([c * aim[0] - s * aim[1], s * aim[0] + c * aim[1], aim[2]])
    direction = np.array(body_thing.centre) + turned * body_thing.radius - origin
    direction /= np.linalg.norm(direction)
    expected, smallest = slow_hit(body_thing, origin, direction)
    assume(abs(smallest) > 3e-3)  # a ray that just grazes the surface may be called either way
    body = Body.of(body_thing)
    origins, directions = (vector.astype(np.float32)[:, None] for vector in (origin, direction))
    distance = float(first_hit(body, origins, directions)[0])
    if math.isinf(expected):
        assert math.isinf(distance)
        return
    assert near(body, origins, directions)[0]
    # Within the tolerance of the hit, which a flat angle draws out along the ray.
    point = origin + distance * direction
    assert abs(gap_to(body_thing, point)) < 1e-3
    assert distance == pytest.approx(expected, abs=0.05)
    normal, bend = normals_at(body, point.astype(np.float32)[:, None])
    steps = np.eye(3) * 1e-5
    slope = np.array([gap_to(body_thing, point + step) - gap_to(body_thing, point - step) for step in steps])
    assert np.linalg.norm(normal[:, 0]) == pytest.approx(1.0, abs=1e-5)
    assert normal[:, 0] @ slope / np.linalg.norm(slope) > 0.99
    assert bend[0] >= 0


@given(shape=st.sampled_from([CUBE, SPHERE, CYLINDER]), rotation=angles, x=places, y=places, lamp=st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_hidden_share_against_tracing_each_lamp_sample(
    shape: int, rotation: float, x: float, y: float, lamp: int
) -> None:
    body_thing = thing(shape, rotation=rotation)
    assume(math.hypot(x, y) > 1.1)  # beside the thing, not under it
    samples = lamps_of(Scene((body_thing,)), grid=4)[lamp].samples
    share = float(hidden_share(Body.of(body_thing), np.array([[x], [y], [0.0]], dtype=np.float32), samples)[0])
    origin = np.array([x, y, 0.0])
    sure, unsure = 0, 0
    for sample in samples.T.astype(np.float64):
        direction = (sample - origin) / np.linalg.norm(sample - origin)
        distance, smallest = slow_hit(body_thing, origin, direction)
        # Shadows take edges as sharp: what passes close to a rounded edge may count either way.
        if abs(smallest) < (0.16 if shape == CUBE else 0.06):
            unsure += 1
        else:
            sure += math.isfinite(distance)
    assert sure / 16 <= share <= (sure + unsure) / 16


def test_a_point_outside_the_shadow_bounds_sees_the_whole_lamp() -> None:
    generator = np.random.default_rng(0)
    checked = 0
    for number in range(20):
        scene = draw_scene(np.random.default_rng((1, number)), 3)
        bodies = tuple(Body.of(one) for one in scene.things)
        points = generator.uniform((-6, -6, 0), (6, 6, 1.5), size=(400, 3)).astype(np.float32).T
        nobody = np.full(400, -1)
        for lamp in lamps_of(scene, grid=3):
            culled = light_share(lamp, points, nobody, bodies)
            np.testing.assert_array_equal(culled, light_share(lamp, points, nobody, bodies, cull=False))
            for body in bodies:
                lower, upper = shadow_bounds(lamp, body)
                outside = np.logical_or(np.array(lower) > points[:2].T, np.array(upper) < points[:2].T).any(axis=1)
                assert (hidden_share(body, points[:, outside], lamp.samples) == 0).all()
                checked += int(outside.sum())
    assert checked > 10_000


def test_a_thing_does_not_shade_itself() -> None:
    bodies = (Body.of(thing(CUBE)), Body.of(thing(CYLINDER, 2.0, 2.0)))
    # Points on a rounded edge lie inside the sharp-edged cube that shadows are made of.
    points = np.array([[0.1], [0.2], [1.38]], dtype=np.float32)
    for lamp in lamps_of(Scene(()), grid=2):
        assert light_share(lamp, points, np.array([0]), bodies)[0] == 1.0
        assert light_share(lamp, points, np.array([1]), bodies)[0] == 0.0
