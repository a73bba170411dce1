"""Mutual information of the two views' types, at cases whose value is known."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tusk.losses.mutual_information import mutual_information_loss


def one_hot(labels, types):
    return F.one_hot(torch.tensor(labels), types).double()


def test_agreeing_even_types_reach_the_largest_information():
    types = one_hot([0, 1, 2, 3] * 5, 4)
    assert mutual_information_loss(types, types).item() == pytest.approx(-math.log(4), abs=1e-4)


def test_independent_or_single_types_carry_none():
    first, second = one_hot([0, 0, 1, 1], 2), one_hot([0, 1, 0, 1], 2)
    assert mutual_information_loss(first, second).item() == pytest.approx(0, abs=1e-6)
    same = one_hot([1] * 6, 3)
    assert mutual_information_loss(same, same).item() == pytest.approx(0, abs=1e-4)


def test_equals_the_definition_on_random_input():
    rng = np.random.default_rng(0)
    first = torch.tensor(rng.dirichlet(np.ones(5), 40))
    second = torch.tensor(rng.dirichlet(np.ones(5), 40))
    joint = sum(np.outer(a, b) for a, b in zip(first.numpy(), second.numpy(), strict=True)) / 40
    joint = (joint + joint.T) / 2
    expected = 0.0
    for i in range(5):
        for j in range(5):
            expected -= joint[i, j] * math.log(joint[i, j] / (joint[i].sum() * joint[:, j].sum()))
    assert mutual_information_loss(first, second).item() == pytest.approx(expected, abs=1e-9)


def test_evenness_weighs_the_use_of_all_types():
    uneven = one_hot([0] * 9 + [1], 2)
    entropy = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    assert mutual_information_loss(uneven, uneven, evenness=0.5).item() == pytest.approx(0, abs=1e-4)
    assert mutual_information_loss(uneven, uneven, evenness=1.0).item() == pytest.approx(-entropy, abs=1e-4)
