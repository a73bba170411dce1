"""Maps that an image and its mirror images agree on."""

import pytest
import torch

from tests.model.test_unet import SIZED
from tusk.config import ModelConfig
from tusk.model.network import seeded_network
from tusk.model.views import encode_views, mirrored


@pytest.mark.parametrize("view", range(4))
def test_twice_is_as_it_was_and_all_views_are_different(view):
    maps = torch.rand(2, 3, 5, 7)
    assert torch.equal(mirrored(mirrored(maps, view), view), maps)
    others = [mirrored(maps, other) for other in range(4) if other != view]
    assert not any(torch.equal(mirrored(maps, view), other) for other in others)


def test_means_are_the_same_for_a_picture_that_lies_otherwise():
    """The mean over all four does not depend on how the picture lies; the network's own maps do."""
    network = seeded_network(ModelConfig.model_validate(SIZED), 0).eval()
    with torch.no_grad():
        network.encoder.head[-1].weight.mul_(20)
        image = torch.rand(1, 3, 64, 96)
        _, score, radius = encode_views(network.encoder, image, 4)
        _, turned, turned_radius = encode_views(network.encoder, mirrored(image, 3), 4)
        alone, turned_alone = (network.encoder(one)[1] for one in (image, mirrored(image, 3)))
    torch.testing.assert_close(mirrored(turned, 3), score, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(mirrored(turned_radius, 3), radius, atol=1e-4, rtol=1e-4)
    assert (mirrored(turned_alone, 3) - alone).abs().max() > 1e-3


def test_one_view_is_the_encoder_and_features_are_those_of_the_image_as_it_is():
    network = seeded_network(ModelConfig.model_validate(SIZED), 0).eval()
    image = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        plain, one, four = (network.encoder(image), *(encode_views(network.encoder, image, views) for views in (1, 4)))
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(plain, one, strict=True))
        assert torch.equal(four[0], plain[0])
        scores = [mirrored(network.encoder(mirrored(image, view))[1], view) for view in range(4)]
    torch.testing.assert_close(four[1], torch.stack(scores).mean(0))
