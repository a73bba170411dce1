"""Which detection a pixel belongs to."""

from dataclasses import replace

import pytest
import torch

from tusk.config import ModelConfig
from tusk.detection.filter import keep_layers
from tusk.detection.masks import claim_pixels, label_map, pixel_shares
from tusk.model.network import seeded_network

SIZE = {"keypoints": 3, "types": 2, "channels": 8, "width": 8, "levels": 2, "window": 5, "decode": "layers"}


def output(**more):
    network = seeded_network(ModelConfig(**SIZE, **more), 0).eval()
    with torch.no_grad():
        return network, network(torch.rand(2, 3, 32, 32), missing="empty")


def labels_of(output, **options):
    return label_map(pixel_shares(output.layer_alpha), **options)


def test_the_largest_share_wins():
    alpha = torch.tensor([[0.5, 0.3, 0.0, 0.2], [0.1, 0.4, 0.0, 0.2]])  # two layers, four pixels
    labels = label_map(pixel_shares(alpha.view(1, 2, 1, 1, 4)))
    assert labels.tolist() == [[[1, 2, 0, 0]]]  # the last pixel: 0.2, 0.2, and 0.6 left for the background


def test_among_layers_the_background_gets_only_what_none_reaches():
    alpha = torch.tensor([[0.5, 0.1, 0.0, 0.2], [0.1, 0.2, 0.0, 0.1]])
    assert label_map(pixel_shares(alpha.view(1, 2, 1, 1, 4)), background=False).tolist() == [[[1, 2, 0, 1]]]


def test_without_a_background_every_pixel_goes_to_a_layer():
    _, encoding = output()
    assert encoding.layer_alpha is not None
    assert (labels_of(encoding) == encoding.layer_alpha[:, :, 0].argmax(1) + 1).all()


def test_background_and_windows_leave_the_rest_to_the_background():
    for more in ({"background": "colour", "layer_window": 8}, {"layer_window": 8}):
        _, encoding = output(**more)
        labels, covered = labels_of(encoding), encoding.layer_alpha[:, :, 0].sum(1) > 0
        assert (labels[~covered] == 0).all() and (~covered).any()


def test_a_background_that_shows_through_everywhere_takes_every_pixel():
    network, _ = output(background="colour")
    with torch.no_grad():
        network.decoder.unet.last.bias[3] = -50.0  # the alpha logit; that of the background is 0
        assert (labels_of(network(torch.rand(1, 3, 32, 32), missing="empty")) == 0).all()


def test_layers_that_are_not_kept_are_as_if_they_had_never_been():
    _, encoding = output(background="colour")
    logits = torch.randn(2, 3, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    nothing = torch.zeros(2, 1, 1, 32, 32)  # the background's
    encoding = replace(encoding, layer_alpha=torch.cat([logits, nothing], 1).softmax(1)[:, :3])
    kept = torch.tensor([[True, False, True], [True, True, True]])
    left = keep_layers(encoding, kept)
    expected = torch.cat([logits[0, [0, 2]], nothing[0]]).softmax(0)[:2]
    torch.testing.assert_close(left.layer_alpha[0, [0, 2]], expected)
    assert not left.layer_alpha[0, 1].any() and torch.equal(left.found, encoding.found & kept)
    torch.testing.assert_close(left.layer_alpha[1], encoding.layer_alpha[1])
    none = keep_layers(encoding, torch.zeros_like(kept))
    assert (labels_of(none) == 0).all() and not none.found.any()


def test_points_without_layers_are_kept_alike():
    network = seeded_network(ModelConfig(**SIZE | {"decode": "plain"}), 0).eval()
    with torch.no_grad():
        encoding = network(torch.rand(2, 3, 32, 32), missing="empty")
    left = keep_layers(encoding, torch.tensor([[True, False, True]]).expand(2, -1))
    assert left.layer_alpha is None and left.found.tolist() == [[True, False, True]] * 2


def test_a_pixel_goes_to_whoever_shares_it_and_has_its_colour():
    network, encoding = output(background="colour")
    red, blue = torch.tensor([0.9, 0.1, 0.1]), torch.tensor([0.1, 0.1, 0.9])
    images = red.view(1, 3, 1, 1).expand(2, 3, 32, 32)
    # Layer 0 is blue and has most of every pixel, 1 is red and has less, 2 is red and has nothing.
    rgb = torch.stack([blue, red, red])[None, :, :, None, None].expand(2, 3, 3, 32, 32)
    alpha = torch.tensor([0.6, 0.3, 0.0])[None, :, None, None, None].expand(2, 3, 1, 32, 32)
    encoding = replace(encoding, layer_rgb=rgb, layer_alpha=alpha)
    assert (labels_of(encoding) == 1).all()
    claimed = claim_pixels(network, images, encoding, 0.1)
    assert (labels_of(claimed) == 2).all()
    assert (claimed.layer_alpha[:, 2] == 0).all() and (claimed.layer_alpha.sum(1) <= 1 + 1e-6).all()
    assert claimed.reconstruction is encoding.reconstruction
    # White fits neither of them: then the share decides, as before.
    white = claim_pixels(network, torch.ones(2, 3, 32, 32), replace(encoding, layer_alpha=alpha / 0.9), 0.1)
    torch.testing.assert_close(white.layer_alpha, alpha / 0.9)


def test_the_background_claims_what_has_its_colour():
    network, encoding = output(background="colour")
    with torch.no_grad():
        behind = network.background(torch.zeros(2, 3, 32, 32))
    red = torch.tensor([1.0, 0.0, 0.0])
    assert (behind[0, :, 0, 0] - red).norm() > 0.5
    rgb = red[None, None, :, None, None].expand(2, 3, 3, 32, 32)
    encoding = replace(encoding, layer_rgb=rgb, layer_alpha=torch.full((2, 3, 1, 32, 32), 0.3))
    assert (labels_of(encoding) == 1).all()
    assert (labels_of(claim_pixels(network, behind.expand(2, 3, 32, 32), encoding, 0.1)) == 0).all()


def test_brightness_counts_less_than_hue():
    network, encoding = output(background="colour")
    dark, blue = torch.tensor([0.3, 0.1, 0.1]), torch.tensor([0.3, 0.3, 0.5])
    rgb = torch.stack([blue, dark, dark])[None, :, :, None, None].expand(2, 3, 3, 32, 32)
    alpha = torch.tensor([0.6, 0.3, 0.0])[None, :, None, None, None].expand(2, 3, 1, 32, 32)
    lit = (dark + 0.2).view(1, 3, 1, 1).expand(2, 3, 32, 32)
    assert (lit[0, :, 0, 0] - blue).norm() < (lit[0, :, 0, 0] - dark).norm()
    claimed = claim_pixels(network, lit, replace(encoding, layer_rgb=rgb, layer_alpha=alpha), 0.05)
    assert (labels_of(claimed) == 2).all()


def test_a_layer_is_recoloured_by_its_own_pixels():
    """Two halves of nearly one colour: where the layers meet, what each is off is known from where it is alone."""
    network, encoding = output()
    left, right = torch.tensor([0.5, 0.3, 0.3]), torch.tensor([0.5, 0.3, 0.35])
    images = torch.cat([left.view(1, 3, 1, 1).expand(2, 3, 32, 16), right.view(1, 3, 1, 1).expand(2, 3, 32, 16)], 3)
    decoded = torch.stack([left + torch.tensor([0, 0, 0.06]), right + torch.tensor([0, 0.06, 0]), left])
    alpha = torch.zeros(2, 3, 1, 32, 32)
    alpha[:, 0, :, :, :10] = alpha[:, 1, :, :, 22:] = 1.0
    alpha[:, :2, :, :, 10:22] = 0.5
    rgb = decoded[None, :, :, None, None].expand(2, 3, 3, 32, 32)
    labels = labels_of(claim_pixels(network, images, replace(encoding, layer_rgb=rgb, layer_alpha=alpha), 0.05))
    assert (labels[..., :16] == 1).all() and (labels[..., 16:] == 2).all()


@pytest.mark.parametrize("more", [{"background": "colour"}, {"layer_window": 8}])
def test_layers_that_are_not_kept_claim_nothing(more):
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    network, encoding = output(**more)
    kept = torch.tensor([[True, False, True], [True, True, False]])
    claimed = claim_pixels(network, images, keep_layers(encoding, kept), 0.3).layer_alpha
    assert claimed.isfinite().all() and not claimed[~kept].any() and claimed[kept].any()
    # As if they had not been there: their own colours make no difference.
    other = replace(encoding, layer_rgb=encoding.layer_rgb * kept[:, :, None, None, None])
    assert torch.equal(claim_pixels(network, images, keep_layers(other, kept), 0.3).layer_alpha, claimed)


def test_without_a_tolerance_shares_stay_as_they_are():
    network, encoding = output(background="colour")
    assert claim_pixels(network, torch.rand(2, 3, 32, 32), encoding, None) is encoding
