"""Keypoints in uniform regions."""

import pytest
import torch
import torch.nn.functional as F

from tusk.losses.uniform_region import _highest, in_uniform_region, uniform_region_loss


@pytest.mark.parametrize("colour", [0.0, 0.5, 1.0])
def test_uniform_is_where_the_window_holds_one_colour(colour):
    image = torch.full((1, 3, 30, 40), colour)
    image[0, 1, 12:15, 20:23] = 0.7  # in one channel only
    places = torch.tensor([[0.0, 0], [39, 29], [21, 13], [15.0, 13], [14.0, 13], [21, 22.0]])
    # A window of 11 reaches 5 pixels to each side.
    expected = [True, True, False, False, True, True]
    assert in_uniform_region(image, places[None], 11).tolist() == [expected]


@pytest.mark.parametrize("window", [1, 3, 5, 7, 9, 11, 17, 31])
def test_the_largest_of_each_window_against_pooling(window):
    values = torch.randn(2, 3, 21, 34, generator=torch.Generator().manual_seed(window))
    pooled = F.max_pool2d(F.pad(values, [window // 2] * 4, value=-torch.inf), window, 1)
    assert torch.equal(_highest(values, window), pooled)


def test_faint_noise_is_uniform_and_a_faint_object_is_not():
    generator = torch.Generator().manual_seed(0)
    image = 0.3 + 0.03 * torch.rand(1, 3, 20, 20, generator=generator)
    assert in_uniform_region(image, torch.tensor([[[10.0, 10]]]), 5).item()
    image[..., 10, 10] += 0.1
    assert not in_uniform_region(image, torch.tensor([[[10.0, 10]]]), 5).item()


def test_only_scores_in_uniform_regions_are_lowered():
    score = torch.tensor([[0.5, 0.9], [0.2, 0.4]], requires_grad=True)
    loss = uniform_region_loss(score, torch.tensor([[True, False], [False, True]]))
    assert loss.item() == pytest.approx(0.9 / 4)
    loss.backward()
    assert score.grad.tolist() == [[0.25, 0], [0, 0.25]]
