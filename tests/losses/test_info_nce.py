"""Recognising keypoints in the other view."""

import math

import pytest
import torch
import torch.nn.functional as F

from tusk.losses.info_nce import info_nce_loss


def test_equals_the_slow_formula():
    torch.manual_seed(0)
    first, second = F.normalize(torch.randn(2, 7, 5, dtype=torch.float64), dim=-1)
    expected = 0.0
    for one, other in ((first, second), (second, first)):
        for place in range(7):
            similarity = [math.exp(float(one[place] @ other[j]) / 0.3) for j in range(7)]
            expected -= math.log(similarity[place] / sum(similarity)) / 14
    assert info_nce_loss(first, second, 0.3).item() == pytest.approx(expected, abs=1e-12)


def test_best_where_views_agree_and_keypoints_differ():
    apart = torch.eye(6)
    assert info_nce_loss(apart, apart, 0.05).item() < 1e-6
    alike = apart[:1].expand(6, -1)
    assert info_nce_loss(alike, alike, 0.05).item() == pytest.approx(math.log(6))
    assert info_nce_loss(apart, apart.roll(1, 0), 0.05).item() > 10


def test_a_single_keypoint_costs_nothing_and_keeps_the_gradient_finite():
    for count in (0, 1):
        first = torch.ones(count, 4, requires_grad=True)
        loss = info_nce_loss(first, first, 0.2)
        loss.backward()
        assert loss.item() == 0 and torch.equal(first.grad, torch.zeros(count, 4))
