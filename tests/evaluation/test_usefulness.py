"""Idle points and types that are places, on hand-made cases."""

import numpy as np
import torch

from tusk.evaluation.usefulness import idle_points, types_as_places


def test_points_below_a_tenth_of_a_fair_share_are_idle():
    images = torch.zeros(2, 3, 10, 10, dtype=torch.uint8)
    images[0, :, :, :4] = 255  # each differs by 0.5 from the mean in 40 pixels: 10 to explain
    found = torch.tensor([[True, True, False], [True, True, True]])
    gain = torch.tensor([[0.4, 0.6, 0.0], [9.0, 0.3, -1.0]])
    idle = idle_points(gain, found, torch.zeros(2), images)
    assert idle.tolist() == [[True, False, False], [False, True, True]]
    # Half of it explained, half the share.
    idle = idle_points(gain, found, torch.full((2,), 0.05), images)
    assert idle.tolist() == [[False, False, False], [False, False, True]]


def test_one_picture_is_compared_with_its_own_colour():
    images = torch.zeros(1, 3, 10, 10, dtype=torch.uint8)
    images[:, :, :, :5] = 255
    gain, found = torch.tensor([[20.0, 0.5]]), torch.ones(1, 2, dtype=torch.bool)
    assert idle_points(gain, found, torch.zeros(1), images).tolist() == [[False, True]]


def test_kinds_of_things_are_no_places_and_edges_of_things_are():
    rng = np.random.default_rng(0)
    things = rng.uniform(10, 90, (100, 3, 2))
    kinds = rng.integers(0, 4, (100, 3))
    found = np.ones((100, 3), bool)
    assert types_as_places(things, found, kinds) < 0.05
    # Left and right edge of one thing in each picture, near each other, and a third kind elsewhere.
    pairs = np.stack([things[:, 0] - [4, 0], things[:, 0] + [4, 0]], 1)
    places = np.tile([0, 1], (100, 1))
    assert types_as_places(pairs, found[:, :2], places) > 0.99
    assert types_as_places(pairs, found[:, :2], rng.permuted(places, axis=1)) < 0.1


def test_nothing_to_compare_is_no_place():
    xy, types = np.zeros((4, 3, 2)), np.zeros((4, 3), int)
    assert types_as_places(xy, np.zeros((4, 3), bool), types) == 0
    assert types_as_places(xy, np.ones((4, 3), bool), types) == 0, "one type"
    rare = np.arange(12).reshape(4, 3)  # each type once: its mean is itself
    assert types_as_places(np.random.default_rng(0).random((4, 3, 2)), np.ones((4, 3), bool), rare) == 0
