"""Landmarks from typed points: hand-made cases, and slow references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.evaluation.landmarks import (
    eye_distance,
    fit_landmarks,
    landmark_figures,
    predict_landmarks,
    typed_tensor,
)


def slow_tensor(xy, types, found, type_count):
    tensor = np.zeros((len(xy), type_count, xy.shape[1], 2))
    for image in range(len(xy)):
        for type_ in range(type_count):
            own = [tuple(xy[image, k]) for k in range(xy.shape[1]) if found[image, k] and types[image, k] == type_]
            for place, point in enumerate(sorted(own)):
                tensor[image, type_, place] = np.array(point) + 0.5
    return tensor


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 4))
def test_points_stand_by_type_and_from_left_to_right(seed, keypoints, type_count):
    rng = np.random.default_rng(seed)
    xy, types = rng.uniform(0, 80, (4, keypoints, 2)), rng.integers(0, type_count, (4, keypoints))
    found = rng.random((4, keypoints)) < 0.8
    np.testing.assert_array_equal(typed_tensor(xy, types, found, type_count), slow_tensor(xy, types, found, type_count))


def scene(images, seed=0):
    """Four points of four types, and landmarks that are a linear map of them."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 80, (images, 4, 2))
    weights = np.random.default_rng(9).normal(size=(8, 3, 2)) / 4
    landmarks = np.tensordot((xy + 0.5).reshape(images, -1), weights, 1) - 0.5
    types = np.tile(np.arange(4), (images, 1))
    order = rng.permuted(types, axis=1)  # keypoints come in any order
    xy = np.take_along_axis(xy, order[..., None], 1)
    return typed_tensor(xy, order, np.ones_like(order, bool), 4), landmarks


def test_a_linear_map_is_found_again():
    tensor, landmarks = scene(200)
    others, expected = scene(50, seed=1)
    predicted = predict_landmarks(fit_landmarks(tensor, landmarks), others)
    np.testing.assert_allclose(predicted, expected, atol=1e-2)


def test_swapped_types_between_fit_and_score_are_wrong():
    tensor, landmarks = scene(200)
    others, expected = scene(50, seed=1)
    predicted = predict_landmarks(fit_landmarks(tensor, landmarks), others[:, [1, 0, 2, 3]])
    assert np.abs(predicted - expected).mean() > 3


def test_hidden_landmarks_are_left_out_of_the_fit_and_the_score():
    tensor, landmarks = scene(200)
    hidden = landmarks.copy()
    hidden[:100, 1] = np.nan
    weights = fit_landmarks(tensor, hidden)
    np.testing.assert_allclose(predict_landmarks(weights, tensor), landmarks, atol=0.05)
    wrong = np.where(np.isnan(hidden), 1e6, landmarks)  # whatever is predicted there does not matter
    assert landmark_figures(wrong, hidden, np.full(200, 80.0), fitted_on=1).error == 0


def test_one_landmark_does_not_change_another():
    tensor, landmarks = scene(60)
    hidden = landmarks.copy()
    hidden[:30, 0] = np.nan
    alone = fit_landmarks(tensor, landmarks[:, 1:])
    np.testing.assert_allclose(fit_landmarks(tensor, hidden)[:, 1:], alone)


def test_no_points_at_all():
    tensor, landmarks = np.zeros((5, 2, 3, 2)), np.full((5, 4, 2), 10.0)
    np.testing.assert_array_equal(predict_landmarks(fit_landmarks(tensor, landmarks), tensor), -0.5)


def test_the_ridge_is_the_one_that_predicts_left_out_images_best():
    rng = np.random.default_rng(0)
    tensor = rng.normal(size=(20, 1, 6, 2)) + 0.5
    landmarks = tensor[:, 0, :2] + rng.normal(size=(20, 2, 2))  # noise that must not be followed
    inputs, targets = tensor.reshape(20, -1), (landmarks + 0.5).reshape(20, -1)
    square = np.eye(12) * np.trace(inputs.T @ inputs) / 12

    def solve(rows, ridge):
        return np.linalg.solve(inputs[rows].T @ inputs[rows] + ridge * square, inputs[rows].T @ targets[rows])

    def left_out_error(ridge):
        rows = np.arange(20)
        return sum(((inputs[row] @ solve(rows != row, ridge) - targets[row]) ** 2).sum() for row in rows)

    slow = solve(np.ones(20, bool), min(10.0 ** np.arange(-6, 3), key=left_out_error))
    np.testing.assert_allclose(fit_landmarks(tensor, landmarks).reshape(12, -1), slow, atol=1e-9)


def test_units():
    true = np.array([[[0.0, 0], [10, 0], [5, 5]]])
    assert eye_distance(true).tolist() == [10]
    result = landmark_figures(true + np.array([3.0, 4.0]), true, eye_distance(true), fitted_on=7)
    assert result.error == pytest.approx(0.5) and result.by_landmark == (0.5, 0.5, 0.5)
    assert (result.fitted_on, result.scored_on) == (7, 1)


def test_images_without_a_unit_are_left_out():
    true = np.array([[[0.0, 0], [10, 0]], [[0, 0], [0, 0]], [[np.nan, 0], [1, 1]]])
    result = landmark_figures(true + 1, true, eye_distance(true), fitted_on=1)
    assert result.scored_on == 1 and result.error == pytest.approx(np.sqrt(2) / 10)
