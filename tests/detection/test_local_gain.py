"""Gains with several keypoints left out at once, against the exact way: each left out alone, and decoded again."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.detection.bright import shipped
from tusk.config import ModelConfig
from tusk.data.registry import Request, open_dataset
from tusk.detection.gain import exact_gains, gains
from tusk.detection.local_gain import OneImage, groups_apart, local_gains
from tusk.model.keypoints import Keypoints
from tusk.model.network import seeded_network
from tusk.model.unet import apply_norm


def one_of(network, images, output, place=0):
    part = slice(place, place + 1)
    points = Keypoints(network.to_map(output.xy[part]), output.score[part], output.found[part])
    return OneImage(images[part], points, output.descriptors[part])


def digits(count, across, down):
    """Pictures of so many of the canvases that the shipped model knows."""
    each = across * down
    drawn = open_dataset("digits", Request(split="test", count=count * each, size=80, fit="centre-crop"))
    canvases = np.stack([np.asarray(drawn.image(number)) for number in range(count * each)])
    canvases = torch.from_numpy(canvases).view(count, down, across, 80, 80, 3).permute(0, 5, 1, 3, 2, 4)
    return canvases.reshape(count, 3, 80 * down, 80 * across).float() / 255


@torch.no_grad()
def test_the_shipped_model_on_crowded_pictures():
    network = shipped("mnist-hard").network.eval()
    images = digits(2, 2, 2)[..., :140, :150]
    output = network(images, 22, missing="empty")
    expected = exact_gains(network, images, output, output.found)[output.found]
    difference = ((gains(network, images, output)[output.found] - expected) / expected).abs()
    assert 0 < difference.median() < 0.01
    # The gain of a spare keypoint, on nothing, is next to 0: it is compared with those of others.
    scale = expected.abs().clamp_min(0.2 * expected.median())
    assert (difference * expected.abs() / scale).max() < 0.02


@torch.no_grad()
def test_the_shipped_model_on_its_own_canvases_is_exact():
    network = shipped("mnist-hard").network.eval()
    images = digits(2, 1, 1)
    output = network(images, missing="empty")
    expected = exact_gains(network, images, output, output.found)
    torch.testing.assert_close(gains(network, images, output), expected, rtol=1e-5, atol=1e-4)


def held_and_differentiated(network, image, slot):
    """To first order by brute force: held statistics, and those of each norm moved to both sides in turn."""
    whole, inputs, direct = {}, {}, {}

    def moments(norm, x):
        grouped = x.reshape(norm.num_groups, -1)
        return torch.stack([grouped.mean(1), grouped.var(1, unbiased=False)])  # (2, G)

    def normalise(norm, x, statistics):
        mean, variance = (value.repeat_interleave(x.shape[1] // norm.num_groups)[:, None, None] for value in statistics)
        return (x - mean) * (variance + norm.eps).rsqrt() * norm.weight[:, None, None] + norm.bias[:, None, None]

    def keep(norm, x):
        whole[norm], inputs[norm] = moments(norm, x), x
        return apply_norm(norm, x)

    def hold(norm, x):
        direct[norm] = moments(norm, x) - whole[norm]
        return normalise(norm, x, whole[norm])

    def error(apply, score=None):
        return (image.decode(network, apply, score) - image.wanted).square().mean(1).sum()

    before = error(keep)
    score = image.points.score.clone()
    score[0, slot] = 0
    gain = error(hold, score) - before
    for norm, change in direct.items():

        def moved(step, at=norm, by=change):
            return error(lambda one, x: normalise(one, x, moments(one, x) + step * by * (one is at)))

        gain += (moved(1e-3) - moved(-1e-3)) / 2e-3
    return gain


@pytest.mark.parametrize(("width", "levels", "stride"), [(4, 1, 1), (8, 2, 2), (4, 3, 1), (8, 3, 2)])
@torch.no_grad()
def test_as_by_brute_force(width, levels, stride, monkeypatch):
    """In random networks nothing is local: each keypoint is left out alone here. Halfway to no change is no change."""
    settings = {"keypoints": 5, "types": 3, "channels": 6, "window": 7, "width": width, "levels": levels}
    network = seeded_network(ModelConfig.model_validate(settings | {"stride": stride}), 3).eval().double()
    for norm in network.decoder.modules():
        if isinstance(norm, nn.GroupNorm):
            norm.weight.copy_(torch.linspace(0.5, 1.5, len(norm.weight)))
            norm.bias.copy_(torch.linspace(-0.3, 0.3, len(norm.bias)))
    images = torch.rand(1, 3, 48, 40, generator=torch.Generator().manual_seed(2)).double()
    output = network(images)
    image = one_of(network, images, output)
    monkeypatch.setattr("tusk.detection.local_gain._HALFWAY", 0.0)
    found = local_gains(network, image, [[slot] for slot in range(5)])
    expected = torch.stack([held_and_differentiated(network, image, slot) for slot in range(5)])
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-3)


@torch.no_grad()
def test_colours():
    xy = 100 * torch.rand(60, 2, generator=torch.Generator().manual_seed(1))
    found = torch.arange(60) % 7 > 0
    groups = groups_apart(xy, found, 20.0)
    assert sorted(slot for group in groups for slot in group) == torch.nonzero(found).flatten().tolist()
    for group in groups:
        apart = torch.cdist(xy[group], xy[group]) + 1000 * torch.eye(len(group))
        assert apart.min() >= 20
    assert len(groups) < 15
    assert groups_apart(xy, torch.zeros_like(found)) == []


SMALL = {"keypoints": 30, "types": 3, "channels": 6, "width": 8, "levels": 2, "window": 5, "stride": 2}


def crowded():
    network = seeded_network(ModelConfig.model_validate(SMALL), 1).eval()
    images = torch.rand(3, 3, 120, 130, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        output = network(images, 30, missing="empty")
    output.found[1, 24:] = False
    output.found[2, 3:] = False
    output.score[~output.found] = 0
    return network, images, output


def test_each_image_alone_is_the_same_and_what_was_not_found_gains_nothing():
    network, images, output = crowded()
    together = gains(network, images, output)
    assert ((together != 0) == output.found).all()
    for place in range(3):
        only = type(output)(
            **{name: None if value is None else value[place : place + 1] for name, value in vars(output).items()}
        )
        alone = gains(network, images[place : place + 1], only)
        torch.testing.assert_close(alone[0], together[place], rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("learnt", [False, True])
def test_wherever_it_is_called_from_the_network_is_left_as_it_was(mode, learnt):
    network, images, output = crowded()
    expected = gains(network, images, output)
    network.requires_grad_(learnt)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with mode():
        found = gains(network, images, output)
    assert not found.requires_grad
    torch.testing.assert_close(found, expected)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    for module in network.modules():
        assert not module._forward_hooks and "forward" not in vars(module)
    assert all(weight.grad is None and weight.requires_grad == learnt for weight in network.parameters())


def test_weights_made_in_inference_mode():
    """No derivative can be had of what they make."""
    _, images, output = crowded()
    with torch.inference_mode():
        network = seeded_network(ModelConfig.model_validate(SMALL), 1).eval()
        torch.testing.assert_close(gains(network, images, output), exact_gains(network, images, output, output.found))
