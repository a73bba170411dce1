"""Gain against the slow and obvious way: take the keypoint out of the input, and decode the image again."""

import pytest
import torch

from tusk.config import ModelConfig
from tusk.detection import gain
from tusk.detection.gain import gains
from tusk.model.background import make_thumbnail
from tusk.model.keypoints import Keypoints
from tusk.model.network import seeded_network

SMALL = {"keypoints": 4, "types": 3, "channels": 6, "width": 8, "levels": 2, "window": 7}


def by_hand(network, images, output):
    """One image and keypoint at a time; only the others are given to the decoder at all."""
    found = torch.zeros_like(output.score)
    for image in range(output.xy.shape[0]):
        for keypoint in range(output.xy.shape[1]):
            if not output.found[image, keypoint]:
                continue
            others = [place for place in range(output.xy.shape[1]) if place != keypoint]
            points = Keypoints(
                network.to_map(output.xy[image, others])[None],
                output.score[image, others][None],
                output.found[image, others][None],
            )
            thumbnail = make_thumbnail(images[image][None])
            reconstruction = network.decode(
                points, output.descriptors[image, others][None], images.shape[-2:], thumbnail=thumbnail
            )
            without = (reconstruction.reconstruction[0] - images[image]).square().sum() / 3
            whole = (output.reconstruction[image] - images[image]).square().sum() / 3
            found[image, keypoint] = without - whole
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stride": 2},
        {"decode": "layers"},
        {"decode": "layers", "background": "colour"},
        {"decode": "layers", "background": "picture"},
        {"decode": "layers", "layer_window": 16},
        {"decode": "layers", "layer_window": 16, "background": "colour", "stride": 2},
    ],
    ids=str,
)
@torch.no_grad()
def test_as_by_hand(settings, monkeypatch):
    monkeypatch.setattr(gain, "_PIXELS_AT_ONCE", 3 * 30 * 34)  # three images at once: parts that do not divide evenly
    network = seeded_network(ModelConfig.model_validate(SMALL | settings), 1).eval()
    if network.decoder.background is not None:
        network.decoder.background.start_at(torch.tensor([1.0, -2.0, 0.5]))
        if network.decoder.background.light is not None:
            network.decoder.background.light.weight.normal_(generator=torch.Generator().manual_seed(1))
    images = torch.rand(2, 3, 30, 34, generator=torch.Generator().manual_seed(2))
    output = network(images)
    assert output.found.all()
    torch.testing.assert_close(gains(network, images, output), by_hand(network, images, output), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"decode": "layers"}], ids=str)
@torch.no_grad()
def test_what_was_not_found_gains_nothing(settings):
    network = seeded_network(ModelConfig.model_validate(SMALL | {"window": 31} | settings), 1).eval()
    images = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    output = network(images, 4, missing="empty")
    assert 0 < output.found.sum() < 4
    gain = gains(network, images, output)
    assert (gain[~output.found] == 0).all()
    assert (gain[output.found] != 0).all()


@torch.no_grad()
def test_layers_that_are_all_sure_of_themselves_leave_no_nan():
    network = seeded_network(ModelConfig.model_validate(SMALL | {"decode": "layers"}), 1).eval()
    images = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    output = network(images)
    output.layer_alpha[:, 0], output.layer_alpha[:, 1:] = 1.0, 0.0  # the softmax of one very large logit
    assert gains(network, images, output).isfinite().all()
