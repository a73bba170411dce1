"""Landmark error beside the error of a constant guess: points that know the landmarks, and points that do not."""

import numpy as np
import pytest

from tusk.data.dataset import Truth
from tusk.data.datasets.h36m import JOINT_NAMES
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.evaluation.landmark_check import are_landmarks, check_landmarks

FACE = np.array([[30, 35], [50, 35], [40, 45], [33, 55], [47, 55]], float)


def faces(count=100):
    rng = np.random.default_rng(0)
    points = FACE + rng.uniform(-15, 15, (count, 1, 2))
    return points, tuple(Truth(points=own.astype(np.float32), classes=np.arange(5)) for own in points)


def checked(xy, truths):
    found = np.ones(xy.shape[:2], bool)
    return check_landmarks(xy, np.tile(np.arange(xy.shape[1]), (len(xy), 1)), found, truths, xy.shape[1], 80)


def test_points_on_the_eyes_know_the_face_and_points_anywhere_do_not():
    points, truths = faces()
    known = checked(points[:, :2], truths)
    assert known.error < 0.03 < 0.4 < known.mean_guess and known.unit == "the distance between the eyes"
    rng = np.random.default_rng(1)
    unknown = checked(rng.uniform(0, 80, (100, 2, 2)), truths)
    assert unknown.error > 0.95 * unknown.mean_guess == pytest.approx(0.95 * known.mean_guess)


def test_the_guess_is_the_mean_of_the_other_images():
    points, truths = faces(10)
    apart = []
    for image in range(10):
        others = [own for number, own in enumerate(points) if number % 5 != image % 5]
        apart.append(np.linalg.norm(np.mean(others, 0) - points[image], axis=1).mean() / 20)
    assert checked(points, truths).mean_guess == pytest.approx(np.mean(apart), rel=1e-4)
    assert checked(points[:9], truths[:9]) is None, "too few to fit"


def test_a_landmark_that_is_seldom_visible_is_left_out():
    points, truths = faces(20)
    hidden = truths[0].points.copy()
    hidden[4] = np.nan
    assert np.isfinite(checked(points, (Truth(points=hidden), *truths[1:])).error)


def test_what_landmarks_are():
    _, truths = faces(3)
    assert are_landmarks(LANDMARKS, truths)
    assert not are_landmarks(LANDMARKS, ()) and not are_landmarks(("0", "1", "2", "3", "4"), truths)
    two = Truth(points=np.zeros((10, 2), np.float32))
    assert not are_landmarks(LANDMARKS, (*truths, two)), "two faces in an image"
    assert are_landmarks(JOINT_NAMES, (Truth(points=np.zeros((32, 2), np.float32)),))
