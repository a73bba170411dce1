"""Things by the pictures alone: plain and uneven backgrounds, pale things, and points on, beside and twice on them."""

import numpy as np
import pytest
import torch

from tusk.evaluation.things import find_foreground, smooth_background, thing_figures

CENTRES = np.array([[16, 16], [16, 48], [48, 16], [48, 48]], float)


def discs(centres=CENTRES, radius=7.0, colour=(40, 160, 60), side=64, ground=200.0, slope=0.0, noise=2.0, count=12):
    """Pictures (N, 3, side, side) of the same discs, each with noise of its own, on a ground that grows brighter to the
    right."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side]
    picture = np.repeat((ground + slope * (x / side - 0.5))[None], 3, 0)
    for cx, cy in centres:
        picture[:, np.hypot(x - cx, y - cy) <= radius] = np.array(colour, float)[:, None]
    noisy = picture + noise * rng.standard_normal((count, 3, side, side))
    return torch.from_numpy(noisy.clip(0, 255).astype(np.uint8))


def figures(images, points):
    xy = np.repeat(np.asarray(points, float)[None], len(images), 0)
    return thing_figures(find_foreground(images), xy, np.ones(xy.shape[:2], bool))


@pytest.mark.parametrize("slope", [0, 90])
def test_foreground_is_the_discs_whatever_the_light(slope):
    images = discs(slope=slope, ground=150)
    found = find_foreground(images)
    y, x = np.mgrid[:64, :64]
    true = np.min([np.hypot(x - cx, y - cy) for cx, cy in CENTRES], 0) <= 7
    assert found.clear.all()
    assert (found.masks & true).sum() > 0.97 * true.sum() * len(images)
    assert (found.masks & ~true).mean() < 0.06  # a rim of half a pixel


def test_background_goes_through_under_the_discs():
    images = discs(slope=60, noise=0.0).float() / 255
    ground = discs(centres=[], slope=60, noise=0.0).float() / 255
    assert float((smooth_background(images) - ground).abs().max()) < 0.02


def test_a_pale_thing_counts_beside_a_dark_one():
    images = discs(CENTRES[:2], colour=(20, 20, 90))
    pale = discs(CENTRES[2:], colour=(170, 150, 150))
    both = torch.minimum(images, pale)
    assert figures(both, CENTRES).on_nothing == 0


def test_one_point_on_each_thing_is_fine():
    sound = figures(discs(), CENTRES)
    assert (sound.on_nothing, sound.doubled, sound.missed) == (0, 0, 0) and sound.pictures == 12


def test_points_beside_things_are_counted_and_marked():
    beside = figures(discs(), [*CENTRES[:2], [32, 32], [3, 32]])
    assert beside.on_nothing == 0.5 and beside.missed == 0.5
    assert np.array_equal(beside.beside[0], [False, False, True, True])


def test_a_point_just_beside_a_bent_thing_is_on_it():
    assert figures(discs(), CENTRES + np.array([0, 7.9])).on_nothing == 0
    assert figures(discs(), CENTRES + np.array([0, 11])).on_nothing == 1


def test_several_points_on_a_thing_are_doubles():
    twice = figures(discs(), [*(CENTRES - 3), *(CENTRES + 3)])
    assert twice.doubled == 0.5 and twice.on_nothing == 0 and twice.missed == 0


def test_things_that_touch_have_a_point_each():
    """One region of twice the size of a single thing, with two points that are a thing's width apart."""
    touching = np.array([[16, 16], [29, 16], [48, 48], [16, 48]], float)
    sound = figures(discs(touching), touching)
    assert sound.doubled == 0 and sound.missed == 0
    crowded = figures(discs(touching), [*touching, [18, 20], [27, 12]])
    assert crowded.doubled >= 2 / 6 - 1e-9


def test_pictures_without_a_plain_background_are_not_judged():
    rng = np.random.default_rng(0)
    busy = torch.from_numpy(rng.integers(0, 255, (6, 3, 64, 64)).astype(np.uint8))
    plain = torch.full((6, 3, 64, 64), 120, dtype=torch.uint8)
    for images in (busy, plain):
        assert not find_foreground(images).clear.any()
        judged = figures(images, CENTRES)
        assert judged.pictures == 0 and not judged.beside.any()


def test_pictures_without_points():
    none = thing_figures(find_foreground(discs()), np.zeros((12, 4, 2)), np.zeros((12, 4), bool))
    assert none.doubled == 0 and none.missed == 1 and not none.beside.any()
