"""Mutual information of the two views' types, at cases whose value is known."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tusk.losses.mutual_information import joint_types, mutual_information_loss


def one_hot(labels, types):
    return F.one_hot(torch.tensor(labels), types).double()


def test_agreeing_even_types_reach_the_largest_information():
    types = one_hot([0, 1, 2, 3] * 5, 4)
    assert mutual_information_loss(joint_types(types, types)).item() == pytest.approx(-math.log(4), abs=1e-4)


def test_independent_or_single_types_carry_none():
    first, second = one_hot([0, 0, 1, 1], 2), one_hot([0, 1, 0, 1], 2)
    assert mutual_information_loss(joint_types(first, second)).item() == pytest.approx(0, abs=1e-6)
    same = one_hot([1] * 6, 3)
    assert mutual_information_loss(joint_types(same, same)).item() == pytest.approx(0, abs=1e-4)


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
    assert mutual_information_loss(joint_types(first, second)).item() == pytest.approx(expected, abs=1e-9)


def test_evenness_weighs_the_use_of_all_types():
    uneven = one_hot([0] * 9 + [1], 2)
    entropy = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    assert mutual_information_loss(joint_types(uneven, uneven), evenness=0.5).item() == pytest.approx(0, abs=1e-4)
    assert mutual_information_loss(joint_types(uneven, uneven), evenness=1.0).item() == pytest.approx(
        -entropy, abs=1e-4
    )


def test_the_gradient_is_that_of_the_plain_formula():
    torch.manual_seed(0)
    logits = torch.randn(2, 30, 4, dtype=torch.float64, requires_grad=True)

    def gradient(loss_of):
        first, second = logits.softmax(-1)
        return torch.autograd.grad(loss_of(joint_types(first, second)), logits)[0]

    def plain(joint):
        marginal = joint.sum(0)
        return -(joint * joint.log()).sum() + 2 * 1.5 * (marginal * marginal.log()).sum()

    torch.testing.assert_close(gradient(lambda joint: mutual_information_loss(joint, 1.5)), gradient(plain))


def test_with_the_usual_distribution_small_batches_add_up_to_the_large_one():
    torch.manual_seed(0)
    logits = torch.randn(2, 60, 4, dtype=torch.float64, requires_grad=True)
    first, second = logits.softmax(-1)
    whole = joint_types(first, second)
    expected = torch.autograd.grad(mutual_information_loss(whole), logits, retain_graph=True)[0]
    parts = [joint_types(first[start : start + 6], second[start : start + 6]) for start in range(0, 60, 6)]
    with_usual = torch.stack([mutual_information_loss(part, running_mean=whole) for part in parts]).mean()
    without = torch.stack([mutual_information_loss(part) for part in parts]).mean()
    torch.testing.assert_close(torch.autograd.grad(with_usual, logits, retain_graph=True)[0], expected)
    assert not torch.allclose(torch.autograd.grad(without, logits)[0], expected, rtol=0.1)
