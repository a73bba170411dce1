"""Masks at hand-made cases, and against scikit-learn and a slow reference on random ones."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from tusk.evaluation.segmentation import adjusted_rand, match_masks, object_ious, pixel_tables, segmentation_figures

# Two objects of four pixels on a background of eight.
TRUE = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 2, 2], [0, 0, 2, 2]])


def tables(predicted, true=TRUE, labels=4):
    return pixel_tables(np.array([true]), np.array([predicted]), 3, labels)


def figures(predicted, true=TRUE):
    both = [tables(predicted, true)]
    return segmentation_figures(both, both)


def test_perfect():
    result = figures(TRUE)
    assert (result.ari_foreground, result.ari, result.mean_iou, result.objects) == (1, 1, 1, 2)


def test_swapped_labels_are_still_perfect():
    result = figures(np.array([0, 2, 1])[TRUE])
    assert (result.ari_foreground, result.ari, result.mean_iou) == (1, 1, 1)
    assert match_masks(tables(np.array([0, 3, 1])[TRUE])).tolist() == [[2, 0]]


def test_empty_prediction_is_worth_nothing():
    result = figures(np.zeros_like(TRUE))
    assert (result.ari_foreground, result.ari, result.mean_iou) == (0, 0, 0)
    assert match_masks(tables(np.zeros_like(TRUE))).tolist() == [[-1, -1]]


def test_an_object_shared_by_two_masks_counts_half():
    halved = np.where((TRUE == 1) & (np.arange(4) == 0), 3, TRUE)
    result = figures(halved)
    assert result.mean_iou == pytest.approx(0.75)
    assert 0 < result.ari_foreground < 1


def test_without_a_background_the_foreground_can_be_perfect_and_the_rest_not():
    spilt = np.where(np.arange(4)[:, None] < 2, 1, 2) * np.ones_like(TRUE)  # every pixel goes to a layer
    result = figures(spilt)
    assert result.ari_foreground == 1 and result.ari < 0.5 and result.mean_iou == pytest.approx(0.5)
    assert match_masks(tables(spilt)).tolist() == [[0, 1]]


def test_one_mask_over_both_objects_matches_one_of_them():
    result = figures((TRUE > 0).astype(int))
    assert result.ari_foreground == 0
    assert result.mean_iou == pytest.approx(0.25)


def test_a_single_object_is_all_or_nothing():
    single = (TRUE == 1).astype(int)
    assert figures(single, single).ari_foreground == 1
    assert figures(np.where(np.eye(4), 3, single), single).ari_foreground == 0


def test_an_image_without_objects_is_left_out_of_foreground_and_iou():
    nothing = np.zeros_like(TRUE)
    both = pixel_tables(np.array([nothing, TRUE]), np.array([nothing, TRUE]), 3, 4)
    result = segmentation_figures([both], [both])
    assert (result.ari_foreground, result.mean_iou, result.objects) == (1, 1, 2)
    alone = figures(nothing, nothing)
    assert np.isnan(alone.ari_foreground) and np.isnan(alone.mean_iou) and alone.ari == 1 and alone.objects == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 6), st.integers(1, 30))
def test_rand_index_is_scikit_learns(seed, true_labels, labels, side):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, true_labels, (3, side, 2))
    # Partly the truth itself, so that all values from -1 to 1 come up.
    predicted = np.where(rng.random(true.shape) < rng.random(), true % labels, rng.integers(0, labels, true.shape))
    counted = pixel_tables(true, predicted, true_labels, labels)
    for image, (index, foreground) in enumerate(
        zip(adjusted_rand(counted), adjusted_rand(counted[:, 1:]), strict=True)
    ):
        assert index == pytest.approx(adjusted_rand_score(true[image].ravel(), predicted[image].ravel()), abs=1e-9)
        thing = true[image] > 0
        if thing.any():
            slow = adjusted_rand_score(true[image][thing], predicted[image][thing])
            assert foreground == pytest.approx(slow, abs=1e-9)
        else:
            assert np.isnan(foreground)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 4))
def test_iou_is_the_best_of_all_assignments(seed, objects, masks):
    rng = np.random.default_rng(seed)
    true, predicted = rng.integers(0, objects + 1, (1, 6, 6)), rng.integers(0, masks + 1, (1, 6, 6))
    iou = np.zeros((objects, masks + objects))  # as many columns of nothing as are needed to leave objects out
    for one, other in itertools.product(range(objects), range(masks)):
        first, second = true == one + 1, predicted == other + 1
        iou[one, other] = (first & second).sum() / max((first | second).sum(), 1)
    present = [one for one in range(objects) if (true == one + 1).any()]
    orders = itertools.permutations(range(masks + objects), objects)
    best = max(sum(iou[one, order[one]] for one in present) for order in orders)
    own = object_ious(pixel_tables(true, predicted, objects + 1, masks + 1))[0]
    assert np.isnan(own).sum() == objects - len(present)
    assert np.nansum(own) == pytest.approx(best)


def test_thousands_of_images_are_quick():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 4, (2000, 40, 40), np.uint8), rng.integers(0, 4, (2000, 40, 40), np.uint8)
    started = time.process_time()
    segmentation_figures([pixel_tables(true, predicted, 4, 4)], [pixel_tables(true, predicted, 4, 4)])
    assert time.process_time() - started < 2
