"""The splat against the dense (B, K, C, H, W) tensor that it avoids."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.model.splat import gaussian_profile, splat_each, splat_sum


def slow_splat(xy, score, descriptors, height, width, variance):
    """One normalised 2D Gaussian for each keypoint, times score, times descriptor: (B, K, C, H, W)."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    square = (x - xy[..., 0, None, None]) ** 2 + (y - xy[..., 1, None, None]) ** 2  # (B, K, H, W)
    gaussian = torch.exp(-square / (2 * variance))
    gaussian = gaussian / gaussian.sum((-2, -1), keepdim=True)
    return gaussian[:, :, None] * score[..., None, None, None] * descriptors[..., None, None]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(6, 14), st.integers(6, 14), st.floats(0.05, 2))
def test_splat_and_gradients_equal_the_dense_reference(seed, count, height, width, variance):
    rng = np.random.default_rng(seed)

    def inputs():
        same = np.random.default_rng(seed)
        return (
            torch.tensor(same.random((2, count, 2)) * [width - 1, height - 1]).requires_grad_(),
            torch.tensor(same.random((2, count))).requires_grad_(),
            torch.tensor(same.normal(size=(2, count, 4))).requires_grad_(),
        )

    weight = torch.tensor(rng.normal(size=(2, 4, height, width)))
    fast_inputs, slow_inputs = inputs(), inputs()
    fast = splat_sum(*fast_inputs, height, width, variance)
    slow = slow_splat(*slow_inputs, height, width, variance).sum(1)
    np.testing.assert_allclose(fast.detach(), slow.detach(), atol=1e-9)
    (fast * weight).sum().backward()
    (slow * weight).sum().backward()
    for ours, theirs in zip(fast_inputs, slow_inputs, strict=True):
        np.testing.assert_allclose(ours.grad, theirs.grad, atol=1e-7)


def test_one_map_for_each_keypoint():
    rng = np.random.default_rng(0)
    xy, score = torch.tensor(rng.random((2, 3, 2)) * 9), torch.tensor(rng.random((2, 3)))
    descriptors = torch.tensor(rng.normal(size=(2, 3, 4)))
    each = splat_each(xy, score, descriptors, 10, 12, 0.1)
    np.testing.assert_allclose(each, slow_splat(xy, score, descriptors, 10, 12, 0.1).flatten(0, 1), atol=1e-9)


def test_a_profile_sums_to_one_even_at_the_border():
    profile = gaussian_profile(torch.tensor([0.0, -3.0, 5.5, 40.0]), 10, 0.05)
    np.testing.assert_allclose(profile.sum(-1), 1, atol=1e-6)
    assert profile.argmax(-1).tolist() == [0, 0, profile[2].argmax().item(), 9]
