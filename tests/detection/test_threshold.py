"""The threshold on gains, without a label."""

import numpy as np
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tusk.config import ModelConfig
from tusk.detection import gain
from tusk.detection import threshold as counts
from tusk.detection.settings import DetectionSettings
from tusk.detection.threshold import gain_threshold, least_gain
from tusk.model.network import seeded_network


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.05, 0.95), st.floats(1e-3, 1e3))
def test_the_cut_lies_between_used_and_unused(seed, share, unit):
    rng = np.random.default_rng(seed)
    used = rng.random((200, 6)) < share
    gains = np.where(used, rng.lognormal(0, 0.5, used.shape), rng.normal(0, 0.005, used.shape)) * unit
    threshold = gain_threshold(gains)
    assert ((gains >= threshold) == used).mean() > 0.99


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.05, 1.0), st.integers(100, 600))
@example(765711993, 1.0, 600)
def test_one_kind_is_not_cut(seed, spread, number):
    rng = np.random.default_rng(seed)
    assert gain_threshold(rng.lognormal(2, spread, number)) == -np.inf
    assert gain_threshold(np.exp(spread * rng.random(number))) == -np.inf
    assert gain_threshold(rng.exponential(spread, number)) == -np.inf


def test_bright_and_dark_objects_are_not_parted():
    """Two sharp groups of objects, one of twice the other's brightness, and no keypoint without an object."""
    rng = np.random.default_rng(0)
    gains = np.concatenate([rng.normal(14, 0.1, 160), rng.normal(28, 0.2, 140)])
    assert gain_threshold(gains) == -np.inf
    assert 0.1 < gain_threshold(np.concatenate([gains, rng.normal(0, 0.01, 100)])) < 14


def test_nothing_to_go_by():
    for gains in ([], [0.0, 0.0], [-1.0, -2.0], [3.0], [3.0, 3.0], [np.nan, np.nan]):
        assert gain_threshold(np.array(gains)) == -np.inf


def test_otsu_against_the_slow_reference():
    rng = np.random.default_rng(3)
    gains = np.concatenate([rng.lognormal(0, 0.3, 40), rng.lognormal(4, 0.3, 60)])
    logs = np.log(gains)
    cuts = np.sort(logs)
    below = [logs <= cut for cut in cuts[:-1]]
    spent = [logs[part].var() * part.sum() + logs[~part].var() * (~part).sum() for part in below]
    best = int(np.argmin(spent))
    assert cuts[best] < np.log(gain_threshold(gains)) < cuts[best + 1]


@torch.no_grad()
def test_the_least_gain_is_the_threshold_of_all_images(monkeypatch):
    settings = {"keypoints": 4, "types": 3, "channels": 6, "width": 8, "levels": 2, "window": 7}
    network = seeded_network(ModelConfig.model_validate(settings), 1).train()
    images = torch.randint(0, 256, (11, 3, 24, 24), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    images[::3] = 0  # nothing in some
    given = []
    monkeypatch.setattr(counts, "gain_threshold", lambda values: given.append(values) or 0.25)
    assert least_gain(network, images, DetectionSettings(4, 7, min_gain=5.0, min_score=1.0)) == 0.25
    assert network.training, "left as it was"
    network.eval()
    shown = images / 255
    output = network(shown, missing="empty")
    expected = gain.gains(network, shown, output)[output.found]
    np.testing.assert_allclose(given[0], expected, atol=1e-4)
