"""Maps that an image and its mirror images agree on."""

import pytest
import torch

from tests.model.test_unet import SIZED
from tusk.config import ModelConfig
from tusk.model.network import seeded_network
from tusk.model.views import encode_views, mirrored, mirrored_back


@pytest.mark.parametrize("view", range(8))
def test_back_is_the_inverse(view):
    maps = torch.rand(2, 3, 5, 7)
    torch.testing.assert_close(mirrored_back(mirrored(maps, view), view), maps)


def test_all_eight_views_are_different_and_no_others_follow_from_them():
    maps = torch.rand(1, 1, 4, 4)
    every = [mirrored(maps, view) for view in range(8)]
    assert len({tuple(one.flatten().tolist()) for one in every}) == 8
    assert any(torch.equal(torch.rot90(maps, 1, (-2, -1)), one) for one in every)


def test_means_are_the_same_for_a_picture_that_lies_otherwise():
    """The mean over all eight does not depend on how the picture lies; the network's own maps do."""
    network = seeded_network(ModelConfig.model_validate(SIZED), 0).eval()
    with torch.no_grad():
        network.encoder.head[-1].weight.mul_(20)
        image = torch.rand(1, 3, 64, 96)
        _, score, radius = encode_views(network.encoder, image, 8)
        _, turned, turned_radius = encode_views(network.encoder, mirrored(image, 5).contiguous(), 8)
        alone, turned_alone = (network.encoder(one)[1] for one in (image, mirrored(image, 5).contiguous()))
    torch.testing.assert_close(mirrored_back(turned, 5), score, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(mirrored_back(turned_radius, 5), radius, atol=1e-4, rtol=1e-4)
    assert (mirrored_back(turned_alone, 5) - alone).abs().max() > 1e-3


def test_one_view_is_the_encoder_and_features_are_those_of_the_image_as_it_is():
    network = seeded_network(ModelConfig.model_validate(SIZED), 0).eval()
    image = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        plain, one, four = (network.encoder(image), *(encode_views(network.encoder, image, views) for views in (1, 4)))
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(plain, one, strict=True))
        assert torch.equal(four[0], plain[0])
        scores = [mirrored_back(network.encoder(mirrored(image, view).contiguous())[1], view) for view in range(4)]
    torch.testing.assert_close(four[1], torch.stack(scores).mean(0))
