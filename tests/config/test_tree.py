"""The configuration's values, schedules and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tusk.config import Config, ModelConfig, value_at


def test_schedules():
    assert value_at(0.5, 0.3) == 0.5
    points = ((0.2, 0.0), (0.4, 1.0), (1.0, 0.5))
    assert [value_at(points, at) for at in (0, 0.2, 0.3, 0.4, 0.7, 1.0)] == pytest.approx([0, 0, 0.5, 1, 0.75, 0.5])


@given(st.floats(0, 1))
def test_a_schedule_stays_between_its_points(progress):
    assert 0.1 <= value_at(((0.1, 1.0), (0.5, 0.1), (0.9, 0.4)), progress) <= 1.0


@pytest.mark.parametrize(
    "values",
    [
        {"model": {"keypoints": 0}},
        {"model": {"stride": 3}},
        {"model": {"window": 12}},
        {"model": {"layer_window": 64}},
        {"model": {"decode": "layers", "layer_window": 60}},
        {"model": {"background": "colour"}},
        {"detection": {"mask_tolerance": 0.1}},
        {"detection": {"window": 12}},
        {"model": {"decode": "layers"}, "detection": {"relocate_keypoints": 1}},
        {
            "model": {"decode": "layers", "background": "flat", "sizes": (4.0, 16.0)},
            "detection": {"relocate_keypoints": 1},
        },
        {"model": {"decode": "layers"}, "detection": {"merge_fragments_above": 1.0}},
        {"losses": {"opacity": {"weight": 0.1}}},
        {"model": {"variance": float("nan")}},
        {"training": {"batch": 31}},
        {"training": {"reassign_by_appearance": True, "memory": 100}},
        {"training": {"reassign_by_appearance": True, "prototype_start": "spectral"}},
        {"training": {"window": [[0.0, 21], [0.5, 15]]}, "model": {"window": 13}},
        {"training": {"micro_batch": 3}},
        {"losses": {"kmeans": {"weight": [[0.5, 1.0], [0.2, 0.0]]}}},
        {"losses": {"mutual_information": {"weight": 0.1}}, "training": {"micro_batch": 8}},
        {"unknown": {}},
    ],
)
def test_values_that_cannot_be_are_refused(values):
    with pytest.raises(ValidationError):
        Config.model_validate(values)


def test_frozen():
    with pytest.raises(ValidationError):
        Config().model.keypoints = 3


def test_the_window_on_the_feature_map_is_odd():
    assert [ModelConfig(window=w, stride=s).map_window for w, s in [(13, 1), (13, 2), (13, 4), (21, 2), (27, 4)]] == [
        13,
        7,
        3,
        11,
        7,
    ]
