"""Norms of each pixel's channels: what is found at a place does not depend on how much image lies around it."""

import pytest
import torch

from tusk.config import ModelConfig
from tusk.data.flat_field import LEVEL
from tusk.model.network import seeded_network
from tusk.model.unet import ChannelNorm, Conv3x3, UNet

SIZED = {
    "keypoints": 6,
    "types": 3,
    "channels": 6,
    "width": 4,
    "levels": 3,
    "stride": 2,
    "window": 5,
    "padding": "replicate",
    "norm": "channel",
    "decode": "layers",
    "background": "flat",
    "sizes": (4.8, 40.0),
}


def test_channel_norm_as_by_hand():
    norm, x = ChannelNorm(5), torch.randn(2, 5, 3, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
        norm.bias.normal_()
        given = norm(x)
        for image in range(2):
            for row in range(3):
                for column in range(4):
                    pixel = x[image, :, row, column]
                    wanted = pixel / (pixel.square().mean() + 1e-4).sqrt() * norm.weight + norm.bias
                    torch.testing.assert_close(given[image, :, row, column], wanted)
        assert (ChannelNorm(5)(torch.zeros(1, 5, 2, 2)) == 0).all(), "what is empty stays empty"


@pytest.mark.parametrize("size", [(1, 1), (1, 4), (2, 3), (7, 5)])
@pytest.mark.parametrize("padding", ["zeros", "replicate"])
def test_the_convolution_and_its_gradients_equal_torch_s_own(size, padding):
    ours = Conv3x3(3, 4, padding).double()
    plain = torch.nn.Conv2d(3, 4, 3, padding=1, padding_mode=padding).double()
    plain.load_state_dict(ours.state_dict())
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, *size, generator=generator, dtype=torch.float64, requires_grad=True)
    asked = torch.randn(2, 4, *size, generator=generator, dtype=torch.float64)
    given, wanted = ours(x), plain(x)
    torch.testing.assert_close(given, wanted)
    for one, other in zip(
        torch.autograd.grad(given, [x, *ours.parameters()], asked),
        torch.autograd.grad(wanted, [x, *plain.parameters()], asked),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@torch.no_grad()
def test_a_tile_gives_the_same_as_the_whole_picture_away_from_its_edges():
    """Group norms, which depend on the whole image, do not."""
    image = torch.rand(1, 3, 192, 160, generator=torch.Generator().manual_seed(1))
    top, left, side = 32, 24, 128  # multiples of stride x 2^(levels - 1), so that pooling falls on the same pixels
    apart = {}
    for norm in ("channel", "group"):
        encoder = seeded_network(ModelConfig.model_validate({**SIZED, "norm": norm}), 0).eval().encoder
        whole = encoder(image)
        tile = encoder(image[..., top : top + side, left : left + side])
        margin = 28  # of the map: beyond what the network sees around a place
        inner = slice(margin, side // 2 - margin)
        apart[norm] = max(
            float((part[..., inner, inner] - all_of_it[..., top // 2 :, left // 2 :][..., inner, inner]).abs().max())
            for part, all_of_it in zip(tile, whole, strict=True)
        )
    assert apart["channel"] < 1e-5 < 1e-3 < apart["group"]


@torch.no_grad()
def test_an_empty_image_is_the_same_everywhere():
    encoder = seeded_network(ModelConfig.model_validate(SIZED), 0).eval().encoder
    for part in encoder(torch.full((1, 3, 64, 48), LEVEL)):
        torch.testing.assert_close(part, part[..., :1, :1].expand_as(part), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_scores_start_low_and_radii_in_the_middle_of_the_given_sizes():
    encoder = seeded_network(ModelConfig.model_validate(SIZED), 0).eval().encoder
    _, score, radius = encoder(torch.rand(1, 3, 64, 64))
    assert score.mean() < 0.2
    middle = (4.8 * 40) ** 0.5 / 2 / 2
    assert 0.5 * middle < radius.mean() < 2 * middle
    with torch.no_grad():
        encoder.radius_head[-1].bias.fill_(100.0)
    assert encoder(torch.rand(1, 3, 64, 64))[2].max() < 1.4 * 40 / 2 / 2, "sizes stay near the given ones"


@pytest.mark.parametrize("norm", ["group", "channel"])
def test_the_last_convolution_follows_the_trunk(norm):
    unet = UNet(3, 5, 4, 3, norm=norm)
    x = torch.rand(2, 3, 16, 24)
    assert unet.trunk(x).shape == (2, 4, 16, 24)
    torch.testing.assert_close(unet(x), unet.last(unet.trunk(x)))
