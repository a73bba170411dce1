"""Repeatability of stub networks: points that follow the picture, that stay in the frame, and that jump about."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.evaluation.test_things import discs
from tusk.detection.settings import DetectionSettings
from tusk.evaluation import repeatability as module
from tusk.evaluation.repeatability import match_distances, repeatability

SETTINGS = DetectionSettings(4, 9)


def green_points(images):
    """The middle of the green disc of each picture, (B, 1, 2)."""
    green = images[:, 1] - images[:, 0] > 0.2
    places = [mask.nonzero().float().mean(0).flip(0) for mask in green]
    return torch.stack(places)[:, None]


def measured(monkeypatch, detect):
    """`detect` of pictures (B, 3, H, W) -> (B, K, 2), in the place of a network."""

    def batch(network, images, settings, skip_unused_gain):  # noqa: ARG001
        xy = detect(images)
        return SimpleNamespace(xy=xy, found=torch.ones(xy.shape[:2], dtype=torch.bool))

    monkeypatch.setattr(module, "detect_batch", batch)
    images = discs(np.array([[28.0, 36.0]]), count=50)
    xy = detect(images.float() / 255)
    network = SimpleNamespace(device=torch.device("cpu"))
    return repeatability(network, images, xy, torch.ones(xy.shape[:2], dtype=torch.bool), SETTINGS)


def test_points_that_follow_the_picture_repeat(monkeypatch):
    figures = measured(monkeypatch, green_points)
    assert figures.rate == 1 and figures.error < 0.01 and figures.points == 50


def test_points_that_stay_in_the_frame_do_not(monkeypatch):
    corners = torch.tensor([[14.0, 14.0], [50.0, 14.0], [14.0, 50.0], [50.0, 50.0]])
    assert measured(monkeypatch, lambda images: corners.expand(len(images), 4, 2)).rate < 0.5


def test_points_anywhere_are_no_better_than_chance(monkeypatch):
    generator = torch.Generator().manual_seed(1)
    crowd = measured(monkeypatch, lambda images: torch.rand(len(images), 200, 2, generator=generator) * 64)
    assert crowd.rate < 0.1, "so many that most have a neighbour by chance"


def test_points_that_tremble_have_a_larger_error(monkeypatch):
    generator = torch.Generator().manual_seed(1)
    shaken = measured(
        monkeypatch, lambda images: green_points(images) + torch.randn(len(images), 1, 2, generator=generator)
    )
    assert 0.01 < shaken.error < 0.03 and shaken.rate < 1


def test_without_points_there_is_nothing_to_say(monkeypatch):
    none = measured(monkeypatch, lambda images: torch.zeros(len(images), 0, 2))
    assert none.points == 0 and none.rate == 0 and np.isnan(none.error)


@pytest.mark.parametrize(("second", "expected"), [([[0.5, 0]], [0.5]), ([[0.9, 0], [0.1, 0]], [0.1]), ([[3, 3]], [])])
def test_matching_is_one_to_one_and_nearest(second, expected):
    assert match_distances(np.array([[0.0, 0.0]]), np.array(second), 1.0) == pytest.approx(expected)


def test_as_many_pairs_as_can_be():
    """The nearest pair first would leave the other two alone."""
    first, second = np.array([[0.0, 0], [1.0, 0]]), np.array([[0.9, 0], [2.0, 0]])
    assert match_distances(first, second, 1.0) == pytest.approx([0.9, 1.0])
