"""Equivariance: nothing to pay for maps that move with the image, and no reward for small ones."""

import pytest
import torch

from tusk.config import WarpConfig
from tusk.geometry.warp import sample_warp
from tusk.losses.equivariance import equivariance_loss, unit_map
from tusk.model.descriptors import Statistics
from tusk.model.network import standardise_map

WARP = WarpConfig(scale=1.1, scale_jitter=0.05, tps=0.1, shift=0.05, rotation=0.3, border="black")


@pytest.fixture
def warp():
    return sample_warp(WARP, 3, torch.Generator().manual_seed(0))


def test_a_map_that_moves_with_the_image_costs_nothing(warp):
    first = torch.rand(3, 4, 24, 24)
    assert equivariance_loss(first, warp.maps(first), warp).item() == 0
    assert equivariance_loss(first, torch.rand(3, 4, 24, 24), warp).item() > 0.01


def test_standardised_maps_are_as_descriptors_are():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(2, 4, 5, 6, generator=generator, dtype=torch.float64)
    statistics = Statistics(torch.randn(4, generator=generator).double(), torch.rand(4, generator=generator).double())
    wanted = statistics.standardise(values.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    torch.testing.assert_close(standardise_map(values, statistics), wanted)


def test_only_the_unmasked_form_pays_for_what_came_from_outside(warp):
    first = torch.rand(3, 4, 24, 24) + 1
    second = warp.maps(first)
    outside = ~warp.inside(24, 24)
    assert outside.any()
    second = torch.where(outside, 7.0, second)
    assert equivariance_loss(first, second, warp).item() == pytest.approx(0, abs=1e-9)
    assert equivariance_loss(first, second, warp, masked=False).item() > 0.1


def test_a_batch_in_parts_gives_the_same(warp):
    first, second = torch.rand(3, 4, 24, 24), torch.rand(3, 4, 24, 24)
    parts = [equivariance_loss(first[i : i + 1], second[i : i + 1], warp[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(torch.stack(parts).mean(), equivariance_loss(first, second, warp))


def test_shrinking_the_features_helps_only_the_raw_form(warp):
    first, second = torch.randn(3, 4, 24, 24), torch.randn(3, 4, 24, 24)
    raw = equivariance_loss(first, second, warp)
    assert equivariance_loss(first * 0.1, second * 0.1, warp) < 0.02 * raw
    unit = equivariance_loss(unit_map(first), unit_map(second), warp)
    torch.testing.assert_close(equivariance_loss(unit_map(first * 0.1), unit_map(second * 0.1), warp), unit)
