"""The chain as a whole: which settings it runs with, and what each stage changes."""

import math
from dataclasses import replace

import pytest
import torch

from tests.detection.bright import shipped
from tusk.config import Config, DetectionConfig
from tusk.detection.pipeline import detect_batch
from tusk.detection.settings import DetectionSettings, settings_from, settings_of
from tusk.errors import UsageError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel

SIZE = {"keypoints": 4, "types": 3, "channels": 6, "width": 8, "levels": 2, "window": 7}
LAYERS = {"decode": "layers", "background": "colour"}


def model(detection=None, provenance=None, **more):
    config = Config.model_validate({"model": {**SIZE, **more}, "detection": detection or {}})
    return StoredModel(seeded_network(config.model, 1).eval(), config, provenance or {})


@pytest.fixture
def images():
    return torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_the_least_gain_is_the_first_of_given_configured_and_stored():
    stored = model(provenance={"least_gain": 2.0})
    assert settings_of(stored).min_gain == 2
    assert settings_of(stored, min_gain=0.5).min_gain == 0.5
    assert settings_of(stored, detection=DetectionConfig(min_gain=0.0)).min_gain == 0
    assert settings_of(model({"min_gain": 3.0}, {"least_gain": 2.0})).min_gain == 3
    assert settings_of(model(provenance={"least_gain": None})).min_gain == 0
    assert settings_from(stored.config).min_gain == -math.inf, "in training none is known"


def test_stored_settings_are_used_and_given_ones_take_their_place():
    stored = model(
        {"window": 9, "relocate_keypoints": 2, "mask_tolerance": 0.1, "merge_fragments_above": 1.0}, **LAYERS
    )
    assert settings_of(stored) == DetectionSettings(4, 9, 2, 0.1, 1.0)
    assert settings_of(stored, 6, 0.2, 1.0, DetectionConfig()) == DetectionSettings(6, 7, min_score=0.2, min_gain=1.0)
    assert settings_of(shipped("clevr6")) == DetectionSettings(6, 9, 3, 0.05, 1.0, min_gain=0.6339)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"keypoints": 0}, "keypoints: 0 cannot be detected"),
        ({"min_score": 1.5}, "min_score: 1.5 is no score"),
        ({"min_gain": math.nan}, "min_gain: it is not a number"),
        ({"detection": DetectionConfig(mask_tolerance=0.1)}, "needs model.decode 'layers'"),
        ({"detection": DetectionConfig(merge_fragments_above=1.0)}, "needs model.background"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, words):
    with pytest.raises(UsageError, match=words):
        settings_of(model(), **given)


@pytest.mark.parametrize("more", [{}, LAYERS], ids=["plain", "layers"])
def test_what_is_left_out_has_no_share_and_everything_else_is_as_it_was(images, more):
    stored = model(**more)
    stored.network.train()
    every = detect_batch(stored.network, images, settings_from(stored.config))
    assert stored.network.training, "left in its mode"
    assert torch.equal(every.kept, every.found) and every.found.all()
    cut = float(every.gain.median())
    some = detect_batch(stored.network, images, replace(settings_from(stored.config), min_gain=cut))
    assert torch.equal(some.kept, every.gain >= cut) and torch.equal(some.found, every.found)
    for name in ("xy", "score", "gain", "type", "probability", "descriptors", "score_map", "reconstruction"):
        assert torch.equal(getattr(some, name), getattr(every, name)), name
    high = detect_batch(stored.network, images, replace(settings_from(stored.config), min_score=0.5))
    assert torch.equal(high.kept, every.score >= 0.5)
    if more:
        assert not some.shares[:, 1:][~some.kept].any()
        torch.testing.assert_close(some.shares.sum(1), torch.ones(3, 32, 32))
        left = set(some.labels()[0].unique().tolist()) - {0}
        assert left <= {1 + slot for slot in range(4) if some.kept[0, slot]}
    else:
        assert some.shares is None and some.labels() is None


def test_gains_are_skipped_only_where_nothing_depends_on_them(images):
    stored = model()
    settings = settings_from(stored.config)
    skipped = detect_batch(stored.network, images, settings, skip_unused_gain=True)
    assert skipped.gain.isnan().all() and torch.equal(skipped.kept, skipped.found)
    needed = detect_batch(stored.network, images, replace(settings, min_gain=0.0), skip_unused_gain=True)
    assert not needed.gain.isnan().any() and (needed.gain[needed.kept] >= 0).all()


def test_a_tile_leaves_out_what_it_does_not_own_before_gains(images):
    stored, settings = model(), settings_from(model().config)
    every = detect_batch(stored.network, images, settings)
    left = detect_batch(stored.network, images, settings, lambda xy: xy[..., 0] < 16)
    own = every.xy[..., 0] < 16
    assert own.any() and not own.all()
    assert torch.equal(left.found, own) and not left.gain[~own].any()
    torch.testing.assert_close(left.gain[own], every.gain[own])


def test_a_window_of_its_own(images):
    stored = model({"window": 15})
    wide = detect_batch(stored.network, images, settings_of(stored))
    expected = stored.network(images, 4, 15, missing="empty")
    assert torch.equal(wide.xy, expected.xy) and torch.equal(wide.found, expected.found)
    assert not torch.equal(wide.xy, stored.network(images, missing="empty").xy)
