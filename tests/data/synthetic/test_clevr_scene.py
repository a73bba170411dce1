"""Scenes keep CLEVR's rules, and everything in them is drawn evenly."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.data.synthetic.clevr.scene import (
    BACK_LAMP,
    CAMERA,
    CAMERA_JITTER,
    COLORS,
    FILL_LAMP,
    GAP,
    KEY_LAMP,
    LAMP_JITTER,
    MARGIN,
    MATERIALS,
    SHAPES,
    SIZES,
    SPREAD,
    Scene,
    Thing,
    draw_scene,
    far_enough,
)


def scenes(count: int, things: int) -> list[Scene]:
    return [draw_scene(np.random.default_rng((7, number)), things) for number in range(count)]


@given(seed=st.integers(0, 2**32 - 1), things=st.integers(1, 10))
@settings(max_examples=40, deadline=None)
def test_every_scene_keeps_the_rules(seed: int, things: int) -> None:
    scene = draw_scene(np.random.default_rng(seed), things)
    assert len(scene.things) == things
    view = np.array(scene.camera[:2]) / math.hypot(*scene.camera[:2])
    for thing in scene.things:
        assert max(abs(thing.x), abs(thing.y)) <= SPREAD
        assert thing.centre[2] == thing.radius == (0.35, 0.7)[thing.size]
        assert 0 <= thing.rotation < 2 * math.pi
    for one, other in combinations(scene.things, 2):
        apart = np.array([one.x - other.x, one.y - other.y])
        assert np.linalg.norm(apart) - one.radius - other.radius >= GAP
        assert abs(apart @ view) > MARGIN
        assert abs(apart @ np.array([-view[1], view[0]])) > MARGIN


@pytest.mark.parametrize(
    ("x", "y", "allowed"),
    [
        (1.64, 1.64, True),  # 2.32 apart
        (1.16, 1.16, False),  # 1.64 apart: less than 0.7 + 0.7 + 0.25
        (3.0, 0.0, False),  # far, but in line with the other across the view
        (0.0, 3.0, False),  # far, but right behind the other
    ],
)
def test_distance_and_margin_for_a_camera_on_an_axis(x: float, y: float, allowed: bool) -> None:
    other = Thing(shape=0, color=0, size=1, material=0, x=0.0, y=0.0, rotation=0.0)
    assert far_enough(x, y, 0.7, other, camera=(0.0, -9.0, 5.0)) is allowed


def test_camera_and_lamps_move_within_their_jitter_and_use_all_of_it() -> None:
    drawn = scenes(200, things=1)
    places = {
        "camera": (CAMERA, CAMERA_JITTER),
        "key_lamp": (KEY_LAMP, LAMP_JITTER),
        "fill_lamp": (FILL_LAMP, LAMP_JITTER),
        "back_lamp": (BACK_LAMP, LAMP_JITTER),
    }
    for name, (base, jitter) in places.items():
        offsets = np.array([getattr(scene, name) for scene in drawn]) - base
        assert np.abs(offsets).max() <= jitter
        assert (offsets.max(axis=0) > 0.9 * jitter).all()
        assert (offsets.min(axis=0) < -0.9 * jitter).all()


def test_attributes_are_drawn_evenly_and_independently() -> None:
    things = [thing for scene in scenes(400, things=4) for thing in scene.things]
    for values, names in (
        ([thing.shape for thing in things], SHAPES),
        ([thing.color for thing in things], COLORS),
        ([thing.material for thing in things], MATERIALS),
    ):
        counts = Counter(values)
        assert set(counts) == set(range(len(names)))
        share = 1 / len(names)
        tolerance = 4 * math.sqrt(len(things) * share * (1 - share))  # four standard deviations
        assert all(abs(count - len(things) * share) < tolerance for count in counts.values())
    # Large things find a place less easily, so that sizes are only nearly even.
    assert 0.42 < np.mean([SIZES[thing.size] == "large" for thing in things]) < 0.55
    assert abs(np.corrcoef([thing.shape for thing in things], [thing.color for thing in things])[0, 1]) < 0.1
    assert abs(np.mean([thing.x for thing in things])) < 0.2


def test_a_scene_follows_from_its_generator() -> None:
    first, again = (draw_scene(np.random.default_rng(3), 5) for _ in range(2))
    assert first == again
    assert first != draw_scene(np.random.default_rng(4), 5)
