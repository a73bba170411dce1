"""Statistics of descriptors against sums written out."""

import torch

from tusk.model.descriptors import DescriptorSpace


def test_things_count_by_their_score_and_empty_slots_not_at_all():
    draw = torch.Generator().manual_seed(0)
    things = torch.randn(40, 5, generator=draw) * 3 + 7
    score = torch.rand(40, generator=draw) + 0.1
    raw = torch.cat([things, torch.full((60, 5), -100.0)]).view(10, 10, 5)
    weight = torch.cat([score, torch.zeros(60)]).view(10, 10)
    statistics = DescriptorSpace(5, "standardised").statistics(raw, weight)
    mean = sum(s * thing for s, thing in zip(score, things, strict=True)) / score.sum()
    square = sum(s * (thing - mean) ** 2 for s, thing in zip(score, things, strict=True)) / score.sum()
    torch.testing.assert_close(statistics.mean, mean)
    torch.testing.assert_close(statistics.std, square.sqrt(), atol=1e-4, rtol=1e-4)


def test_equal_weights_are_no_weights():
    raw = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(1))
    space = DescriptorSpace(6, "standardised")
    plain, weighted = space.statistics(raw), space.statistics(raw, torch.full((3, 4), 0.3))
    torch.testing.assert_close(weighted.mean, plain.mean)
    torch.testing.assert_close(weighted.std, plain.std)


def test_without_any_thing_statistics_are_numbers():
    descriptors, statistics = DescriptorSpace(4, "standardised")(torch.randn(2, 3, 4), torch.zeros(2, 3))
    assert torch.isfinite(descriptors).all() and torch.isfinite(statistics.std).all()
