"""Soft suppression, against the same written slowly, and in the whole chain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.detection.discs import disc_model
from tests.pictures import draw_discs
from tusk.config import DetectionConfig
from tusk.detection.predictor import Predictor
from tusk.detection.suppress import lowered_scores, scores_by_size

REACH = (0.9, 1.6)


def slowly(xy, radius, score, reach, least):
    """One after the other, as one would do it by hand."""
    left, final = {place: float(value) for place, value in enumerate(score)}, np.zeros(len(score))
    while left:
        best = max(left, key=lambda place: (left[place], -place))
        value = left.pop(best)
        if value < least or value <= 0:
            break
        final[best] = value
        for other in left:
            apart = np.hypot(*(xy[other] - xy[best])) / max(radius[other], radius[best])
            left[other] *= min(1, max(0, (apart - reach[0]) / (reach[1] - reach[0])))
    return final


@given(st.integers(0, 2**32 - 1), st.integers(0, 25))
def test_as_by_hand(seed, count):
    random = np.random.default_rng(seed)
    xy, radius, score = random.uniform(0, 40, (count, 2)), random.uniform(2, 12, count), random.uniform(0, 1, count)
    np.testing.assert_allclose(lowered_scores(xy, radius, score, REACH, 0.1), slowly(xy, radius, score, REACH, 0.1))


def test_a_sure_thing_stays_beside_another_and_an_unsure_one_does_not():
    xy, radius = np.array([[0.0, 0.0], [13.0, 0.0]]), np.array([10.0, 9.0])
    factor = (1.3 - 0.9) / 0.7
    sure = lowered_scores(xy, radius, np.array([0.9, 0.8]), REACH, 0.12)
    np.testing.assert_allclose(sure, [0.9, 0.8 * factor])
    np.testing.assert_allclose(lowered_scores(xy, radius, np.array([0.9, 0.2]), REACH, 0.12), [0.9, 0])
    # One nearer than the first distance is the same thing, however sure; one beyond the second is another.
    near, far = np.array([[0.0, 0.0], [8.0, 0.0]]), np.array([[0.0, 0.0], [16.1, 0.0]])
    np.testing.assert_allclose(lowered_scores(near, radius, np.array([0.9, 0.9]), REACH, 0.12), [0.9, 0])
    np.testing.assert_allclose(lowered_scores(far, radius, np.array([0.9, 0.2]), REACH, 0.12), [0.9, 0.2])


def test_of_two_discs_that_overlap_one_is_left_where_the_setting_says_so():
    """Two discs of radius 12, their middles 16 apart."""
    picture = draw_discs(96, 96, [(40, 48, 12), (56, 48, 12)])
    found = [Predictor(disc_model(detection={"suppression": reach})).detect(picture) for reach in (None, (2.0, 2.5))]
    assert [len(one) for one in found] == [2, 1]
    assert found[1].score[0] == pytest.approx(found[0].score.max())


def test_scores_of_small_things_count_for_less():
    score, size = np.array([0.8, 0.8, 0.8]), np.array([84.0, 21.0, 5.25])
    np.testing.assert_allclose(scores_by_size(score, size, 21.0), [0.8, 0.8, 0.4])
    np.testing.assert_array_equal(scores_by_size(score, size, None), score)


@pytest.mark.parametrize("reach", [None, (2.0, 2.5)])
def test_a_small_disc_has_the_lower_score_in_the_whole_chain(reach):
    picture = draw_discs(96, 96, [(25, 48, 14), (70, 48, 7)])
    plain, lowered = (
        Predictor(disc_model(detection={"usual_size": usual, "suppression": reach})).detect(picture)
        for usual in (None, 28.0)
    )
    assert len(plain) == len(lowered) == 2
    np.testing.assert_allclose(lowered.score, plain.score * np.sqrt(np.minimum(plain.size / 28, 1)), rtol=1e-5)
    assert lowered.score.min() < 0.8 * plain.score.min()


def test_the_distances_have_to_rise():
    with pytest.raises(ValidationError, match="must rise"):
        DetectionConfig(suppression=(1.5, 1.5))
