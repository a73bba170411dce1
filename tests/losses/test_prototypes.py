"""What the prototypes follow, against golden numbers and slow references."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.read import read_golden
from tusk.losses.prototypes import (
    mixture_weights,
    nearest_prototype_loss,
    sample_counts,
    sliced_wasserstein,
)


def unit(rng, *shape):
    return F.normalize(torch.tensor(rng.normal(size=shape)), dim=-1)


def slow_mixture(descriptors, prototypes, extra):
    """Straight from the text: shares, deviations, their variance."""
    nearest = [min(range(len(prototypes)), key=lambda m: np.sum((d - prototypes[m]) ** 2)) for d in descriptors]
    shares, deviations = [], []
    for m in range(len(prototypes)):
        own = [d for d, n in zip(descriptors, nearest, strict=True) if n == m]
        shares.append(len(own) / len(descriptors))
        deviations.append(np.mean([(d - prototypes[m]) ** 2 for d in own]) if own else 1.0)
    alpha = np.array(shares) + np.var(deviations) + extra
    return alpha / alpha.sum()


def slow_wasserstein(descriptors, prototypes, counts, noise, projections):
    """One projection and one sample at a time, in torch for the gradient."""
    samples, place = [], 0
    for m, count in enumerate(counts):
        for _ in range(int(count)):
            sample = prototypes[m] + noise[place]
            samples.append(sample / sample.norm())
            place += 1
    total = 0.0
    for direction in projections.T:
        ours = torch.stack([sample @ direction for sample in samples]).sort().values
        theirs = torch.stack([descriptor @ direction for descriptor in descriptors]).sort().values
        total = total + sum((a - b) ** 2 for a, b in zip(ours, theirs, strict=True)) / len(samples)
    return total / projections.shape[1]


def test_golden_loss_and_gradient():
    golden = {key: torch.tensor(value) for key, value in read_golden("sliced_wasserstein").items()}
    prototypes = golden["prototypes"].requires_grad_()
    weights = mixture_weights(golden["descriptors"], prototypes.detach(), extra_mixing=0.01)
    torch.testing.assert_close(weights, golden["mixture_weights"], atol=1e-6, rtol=0)
    loss = sliced_wasserstein(
        golden["descriptors"],
        prototypes,
        projections=golden["projections"],
        noise=golden["component_noise"],
        rounding="authors",
        extra_mixing=0.01,
        reduction="sum",
    )
    assert loss.item() == pytest.approx(golden["loss"].item(), abs=1e-5)
    loss.backward()
    torch.testing.assert_close(prototypes.grad, golden["prototype_gradient"], atol=1e-5, rtol=0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(3, 20), st.integers(1, 6), st.integers(2, 5))
def test_sliced_wasserstein_equals_the_slow_reference(seed, count, types, channels):
    rng = np.random.default_rng(seed)
    descriptors, start = unit(rng, count, channels), unit(rng, types, channels)
    projections = F.normalize(torch.tensor(rng.normal(size=(channels, 7))), dim=0)
    noise = torch.tensor(rng.normal(size=(count, channels))) * 0.02
    weights = mixture_weights(descriptors, start)
    fast_prototypes, slow_prototypes = start.clone().requires_grad_(), start.clone().requires_grad_()
    fast = sliced_wasserstein(descriptors, fast_prototypes, projections=projections, noise=noise)
    slow = slow_wasserstein(descriptors, slow_prototypes, sample_counts(weights, count), noise, projections)
    assert fast.item() == pytest.approx(slow.item(), abs=1e-9)
    fast.backward()
    slow.backward()
    np.testing.assert_allclose(fast_prototypes.grad, slow_prototypes.grad, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 30), st.integers(1, 8), st.floats(0, 0.1))
def test_mixture_weights_equal_the_slow_reference(seed, count, types, extra):
    rng = np.random.default_rng(seed)
    descriptors, prototypes = unit(rng, count, 5), unit(rng, types, 5)
    fast = mixture_weights(descriptors, prototypes, extra)
    np.testing.assert_allclose(fast, slow_mixture(descriptors.numpy(), prototypes.numpy(), extra), atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=120), st.integers(1, 3000))
def test_counts_add_up_and_are_within_one_of_their_share(weights, samples):
    shares = torch.tensor(weights, dtype=torch.float64)
    shares = shares / shares.sum()
    counts = sample_counts(shares, samples)
    assert counts.sum() == samples and (counts >= 0).all()
    assert ((counts - shares * samples).abs() < 1 + 1e-9).all()
    assert sample_counts(shares, samples, "authors").sum() == samples


def test_authors_rounding_gives_the_rest_to_the_last():
    assert sample_counts(torch.tensor([0.3, 0.3, 0.2, 0.2]), 9, "authors").tolist() == [2, 2, 1, 4]
    assert sample_counts(torch.tensor([0.3, 0.3, 0.2, 0.2]), 9).tolist() == [3, 2, 2, 2]


def test_the_same_generator_gives_the_same_loss_and_another_one_not():
    rng = np.random.default_rng(0)
    descriptors, prototypes = unit(rng, 50, 8), unit(rng, 5, 8)
    values = [
        sliced_wasserstein(descriptors, prototypes, generator=torch.Generator().manual_seed(seed)).item()
        for seed in (1, 1, 2)
    ]
    assert values[0] == values[1] != values[2]


def test_prototypes_find_the_clusters():
    """Minimising the loss from poor starts must put a prototype on each of four clusters."""
    rng = np.random.default_rng(3)
    centres = torch.eye(4, 8, dtype=torch.float64)
    descriptors = F.normalize(centres.repeat_interleave(60, 0) + torch.tensor(rng.normal(size=(240, 8))) * 0.03, dim=-1)
    prototypes = torch.tensor(rng.normal(size=(4, 8))).requires_grad_()
    optimiser = torch.optim.Adam([prototypes], 0.1, betas=(0.5, 0.999))
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        optimiser.zero_grad()
        sliced_wasserstein(descriptors, F.normalize(prototypes, dim=-1), generator=generator).backward()
        optimiser.step()
    nearest = (F.normalize(prototypes, dim=-1) @ centres.T).amax(0)
    assert (nearest > 0.95).all()


def test_plain_kmeans_pulls_prototypes_to_their_own_mean():
    descriptors = torch.tensor([[1.0, 0.0], [0.8, 0.6], [-1.0, 0.0]])
    prototypes = torch.tensor([[0.6, 0.8], [-0.8, 0.6]]).requires_grad_()
    loss = nearest_prototype_loss(descriptors, prototypes)
    assert loss.item() == pytest.approx(
        ((0.4**2 + 0.8**2) / 2 + (0.2**2 * 2) / 2 + (0.2**2 + 0.6**2) / 2) / 3, abs=1e-6
    )
