"""Validation without labels."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.training.test_trainer import configured, squares
from tusk.training.trainer import Trainer
from tusk.training.validation import ValidationFigures, explained_variance_of, two_view_agreement, validate


def test_agreement_is_one_for_sure_even_types_and_zero_for_chance():
    types = F.one_hot(torch.arange(40) % 4, 4).float()
    assert two_view_agreement(types, types) == pytest.approx(1, abs=1e-3)
    other = types[torch.from_numpy(np.random.default_rng(0).permutation(40))]
    assert two_view_agreement(types, other) < 0.2
    assert two_view_agreement(types[:0], types[:0]) == 0
    single = torch.ones(5, 1)
    assert two_view_agreement(single, single) == 0


def test_explained_variance_is_against_the_mean_image():
    images = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    images[1] = 255  # the mean image is off by 0.5 everywhere
    assert explained_variance_of(0.0, images) == 1
    assert explained_variance_of(0.05, images) == pytest.approx(0.8)
    assert explained_variance_of(0.3, images) == 0, "worse than the mean image is not less than nothing"
    assert explained_variance_of(0.3, images[:1]) == 1, "one image leaves nothing to compare"


def test_steady_types_do_not_make_up_for_missed_things():
    steady, whole = (ValidationFigures(4, 0.3, 0.9, 0.8, 0.01, *rest) for rest in ((0.8, 0.5), (0.75, 0.7)))
    assert whole.score > steady.score


def test_validation_changes_nothing():
    trainer = Trainer(configured())
    before = {name: value.clone() for name, value in trainer.network.state_dict().items()}
    images = next(squares(6))
    figures = validate(trainer.network, trainer.config, images, seed=0)
    assert trainer.network.training
    assert all(torch.equal(value, before[name]) for name, value in trainer.network.state_dict().items())
    assert 1 <= figures.alive_types <= 4 and 0.25 <= figures.largest_share <= 1
    assert 0 <= figures.agreement <= 1 and 0 <= figures.spread <= 1 and figures.reconstruction_error > 0
    assert figures.explained_variance == explained_variance_of(figures.reconstruction_error, images)
    assert "types alive" in figures.words(4)
    assert validate(trainer.network, trainer.config, images, seed=0) == figures
