"""Localisation and classification at hand-made cases, and against a slow reference."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.evaluation.localisation import assign_types, box_iou, localisation_figures, match_points

POINTS = np.array([[20.0, 20], [60, 20], [40, 60]])
CLASSES = np.array([0, 1, 1])


def figures(found, types, **more):
    settings = {"type_count": 2, "class_count": 2, **more}
    return localisation_figures(np.array([found]), np.array([types]), [POINTS], [CLASSES], **settings)


def test_perfect():
    result = figures(POINTS, [0, 1, 1])
    assert (result.localisation, result.classification, result.both) == (1, 1, 1)


def test_swapped_names_of_types_are_still_perfect():
    result = figures(POINTS, [1, 0, 0])
    assert result.both == 1 and result.class_of_type == (1, 0)


def test_duplicates_count_once():
    result = figures([POINTS[0], POINTS[0] + 1, POINTS[2]], [0, 0, 1])
    assert result.localisation == pytest.approx(2 / 3)


def test_far_away_is_nothing():
    result = figures(POINTS + 300, [0, 1, 1])
    assert (result.localisation, result.classification, result.both) == (0, 0, 0)


def test_a_wrong_type_costs_only_itself():
    result = figures(POINTS, [0, 1, 0])
    assert (result.localisation, result.both) == (1, pytest.approx(2 / 3))


def test_more_types_than_classes_are_many_to_one():
    result = figures(POINTS, [2, 0, 1], type_count=3)
    assert result.both == 1
    assert assign_types(np.array([[3, 1], [0, 2], [5, 6]])).tolist() == [0, 1, 1]


def test_box_overlap():
    iou = box_iou(np.array([[0.0, 0]]), np.array([[0.0, 0], [10, 0], [20, 0], [20 / 3, 0]]), 20)
    np.testing.assert_allclose(iou[0], [1, 1 / 3, 0, 0.5], atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 4))
def test_matching_is_the_best_of_all_assignments(seed, ours, theirs):
    rng = np.random.default_rng(seed)
    found, true = rng.uniform(0, 30, (ours, 2)), rng.uniform(0, 30, (theirs, 2))
    iou = box_iou(found, true, 20)
    best = 0
    for size in range(min(ours, theirs) + 1):
        for rows in itertools.permutations(range(ours), size):
            for columns in itertools.combinations(range(theirs), size):
                if all(iou[r, c] >= 0.5 for r, c in zip(rows, columns, strict=True)):
                    best = max(best, size)
    rows, columns = match_points(found, true, 20)
    assert len(rows) == best
    assert len(set(rows)) == len(rows) and len(set(columns)) == len(columns)
    assert (iou[rows, columns] >= 0.5).all()
