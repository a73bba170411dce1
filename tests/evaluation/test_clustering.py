"""What types stand for, at hand-made cases and against a slow reference."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.data.dataset import Attribute, Truth
from tusk.evaluation.clustering import Matched, attribute_figures, match_inside, matched_objects, visible

VALUES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])  # shape and colour: all four combinations


def figures(types, values=VALUES, type_count=4):
    part = Matched(np.array(types), np.array(values))
    return attribute_figures([part], ("shape", "color"), (2, 2), type_count)


def shares(result):
    return [accuracy.many_to_one for accuracy in result.attributes]


def test_perfect():
    result = figures([0, 1, 2, 3])
    assert shares(result) == [1, 1]
    assert (result.together.many_to_one, result.together.one_to_one, result.matched, result.objects) == (1, 1, 1, 4)


def test_swapped_types_are_still_perfect():
    result = figures([3, 0, 1, 2])
    assert shares(result) == [1, 1] and result.together.one_to_one == 1


def test_nothing_matched():
    result = figures([-1, -1, -1, -1])
    assert shares(result) == [0, 0] and (result.together.one_to_one, result.matched) == (0, 0)


def test_one_type_for_everything_is_right_by_chance_only():
    result = figures([2, 2, 2, 2])
    assert shares(result) == [0.5, 0.5] and result.together.many_to_one == result.together.one_to_one == 0.25


def test_types_of_shape_alone():
    result = figures([0, 0, 1, 1], type_count=2)
    assert shares(result) == [1, 0.5]
    shape, color = result.attributes
    assert (shape.one_to_one, color.one_to_one) == (1, 0.5)  # as many types as values: told one to one as well
    assert result.together.one_to_one == 0.5


def test_two_types_for_one_combination_cost_only_one_to_one():
    values = np.concatenate([VALUES, VALUES])
    result = figures([0, 1, 2, 3, 4, 1, 2, 3], values, type_count=5)
    assert shares(result) == [1, 1] and result.together.many_to_one == 1
    assert result.together.one_to_one == pytest.approx(7 / 8)
    assert result.attributes[0].one_to_one is None  # five types cannot stand for two shapes one to one


def test_unmatched_objects_lower_the_share_but_not_the_accuracy():
    result = figures([0, -1, 2, 3])
    assert result.matched == 0.75 and shares(result) == [1, 1]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 15))
def test_against_every_assignment(seed, type_count, objects):
    rng = np.random.default_rng(seed)
    types, values = rng.integers(-1, type_count, objects), rng.integers(0, 2, (objects, 2))
    result = figures(types, values, type_count)
    matched = max((types >= 0).sum(), 1)
    combos = [tuple(row) for row in values]
    known = sorted(set(combos))
    many, one = 0, 0
    for meaning in itertools.product(known, repeat=type_count):
        right = sum(type_ >= 0 and meaning[type_] == combo for type_, combo in zip(types, combos, strict=True))
        many = max(many, right)
        # A combination may stand once; what types repeat counts for the first of them only.
        if len(set(meaning)) == type_count:
            one = max(one, right)
    assert result.together.many_to_one == pytest.approx(many / matched)
    if type_count <= len(known):
        assert result.together.one_to_one == pytest.approx(one / matched)
    assert result.together.one_to_one <= result.together.many_to_one
    for column, accuracy in enumerate(result.attributes):
        right = 0
        for number in range(type_count):
            own = values[types == number, column]
            right += max(np.bincount(own)) if len(own) else 0
        assert accuracy.many_to_one == pytest.approx(right / matched)


MASK = np.zeros((10, 10), np.uint8)
MASK[1:4, 1:4], MASK[6:9, 6:9] = 1, 2
SHAPES = {"shape": Attribute(np.array([0, 1, 1]), ("a", "b"))}
SCENE = Truth(points=np.array([[2, 2], [7, 7], [np.nan, np.nan]], np.float32), mask=MASK, attributes=SHAPES)
FOUND = np.ones(3, bool)


def test_points_are_matched_with_the_masks_they_lie_in():
    xy = np.array([[7.4, 6.6], [0.0, 9.0], [2.0, 2.0]])
    assert match_inside(SCENE, xy, FOUND).tolist() == [2, 0, -1]
    assert match_inside(SCENE, xy, np.array([False, True, True])).tolist() == [2, -1, -1]
    assert match_inside(SCENE, xy - 300, FOUND).tolist() == [-1, -1, -1]


def test_of_two_points_on_a_thing_the_nearer_counts():
    xy = np.array([[1.0, 1.0], [2.1, 2.0], [3.0, 3.0]])
    assert match_inside(SCENE, xy, FOUND).tolist() == [1, -1, -1]


def test_boxes_serve_where_there_are_no_masks():
    boxes = np.array([[0, 0, 5, 5], [4, 4, 9, 9]], np.float32)
    truth = Truth(points=np.array([[2.5, 2.5], [6.5, 6.5]], np.float32), boxes=boxes, attributes={})
    # The first point lies in both boxes; giving it to the second one leaves the other point its own.
    assert match_inside(truth, np.array([[4.5, 4.5], [1.0, 1.0]]), FOUND[:2]).tolist() == [1, 0]


def test_hidden_things_are_not_asked_for():
    assert visible(SCENE).tolist() == [True, True, False]
    part = matched_objects(SCENE, np.array([5, 6, 7]), np.array([2, -1]))
    assert part.types.tolist() == [7, -1] and part.values.tolist() == [[0], [1]]
