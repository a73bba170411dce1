"""Layers should be transparent where the background explains the image; on a thing they may be opaque."""

import pytest
import torch

from tests.model.test_unet import SIZED
from tusk.config import Config
from tusk.data.flat_field import LEVEL, THRESHOLD
from tusk.geometry.foreground import flat_foreground
from tusk.losses.opacity import opacity_loss
from tusk.training.trainer import Trainer


def test_by_hand():
    cover = torch.tensor([[[[0.0, 0.5], [1.0, 0.2]]]])
    assert float(opacity_loss(cover, 2.0, 0.0)) == pytest.approx(2 * 1.7 / 4)
    assert float(opacity_loss(cover, 0.0, 3.0)) == pytest.approx(3 * (0.25 + 0.16) / 4)
    where = torch.tensor([[[[1.0, 1.0], [0.0, 0.5]]]])  # the one opaque pixel lies on a thing
    assert float(opacity_loss(cover, 2.0, 0.0, where)) == pytest.approx(2 * (0.5 + 0.1) / 4)


def test_flat_foreground_is_a_half_at_the_threshold_and_even_ground_is_none():
    background = torch.full((1, 3, 8, 8), LEVEL)
    image = background.clone()
    image[..., :4, :4] += THRESHOLD
    image[..., 4:, 4:] -= 3 * THRESHOLD
    foreground = flat_foreground(image, background, 2)[0, 0]
    assert foreground.shape == (4, 4)
    torch.testing.assert_close(foreground[:2, :2], torch.full((2, 2), 0.5))
    torch.testing.assert_close(foreground[2:, 2:], torch.full((2, 2), 0.9))
    assert (foreground[:2, 2:] == 0).all()


@pytest.mark.parametrize("size", [64, 56])
def test_reconstruction_and_opacity_at_the_maps_size(size):
    """One step of training on images whose decoder works at the feature map's size."""
    config = Config.model_validate(
        {
            "data": {"size": size},
            "model": SIZED,
            "losses": {"opacity": {"weight": 0.2, "on_background": True}, "blobs": {"weight": 0.02}},
            "training": {"batch": 4, "steps": 4},
        }
    )
    images = torch.randint(0, 256, (2, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    losses = Trainer(config).train_step(images, 0.0).losses
    assert losses.keys() >= {"reconstruction", "opacity", "blobs"}
    assert all(0 < losses[name] < 100 for name in ("reconstruction", "opacity", "blobs"))
