"""Reconstruction losses; VGG16 with random weights, since the real ones are a download."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from tusk.config import Config
from tusk.errors import DataError
from tusk.losses.reconstruction import PerceptualLoss, Reconstruction, load_perceptual_loss, mse_loss


def random_weights(seed=0):
    generator = torch.Generator().manual_seed(seed)
    names, inputs = {}, 3
    for block, widths in enumerate([(64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)]):
        for place, width in enumerate(widths):
            scale = (2 / (9 * inputs)) ** 0.5
            names[f"conv{block + 1}_{place + 1}.weight"] = torch.randn(width, inputs, 3, 3, generator=generator) * scale
            names[f"conv{block + 1}_{place + 1}.bias"] = torch.randn(width, generator=generator) * 0.1
            inputs = width
    return names


@pytest.fixture(scope="module")
def vgg_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vgg") / "vgg16.safetensors"
    save_file(random_weights(), path)
    return path


def test_mse():
    assert mse_loss(torch.zeros(1, 3, 2, 2), torch.full((1, 3, 2, 2), 0.5)).item() == 0.25


def test_features_are_those_of_a_plain_vgg16(vgg_file):
    loss = load_perceptual_loss(vgg_file, side=32)
    image = torch.rand(1, 3, 32, 32)
    weights = random_weights()
    x = (image - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    places = loss.features(image)
    for block, count in enumerate([2, 2, 3, 3]):
        for place in range(count):
            key = f"conv{block + 1}_{place + 1}"
            x = F.relu(F.conv2d(x, weights[f"{key}.weight"], weights[f"{key}.bias"], padding=1))
        torch.testing.assert_close(places[block], x)
        x = F.max_pool2d(x, 2)


def test_zero_for_equal_images_and_gradient_only_to_the_reconstruction(vgg_file):
    loss = load_perceptual_loss(vgg_file, side=48)
    image = torch.rand(2, 3, 24, 32)
    assert loss(image, image).item() == 0
    reconstruction = torch.rand(2, 3, 24, 32).requires_grad_()
    value = loss(image, reconstruction)
    assert value.item() > 0
    value.backward()
    assert reconstruction.grad.abs().sum() > 0
    assert all(not parameter.requires_grad for parameter in loss.parameters())


def test_the_longer_side_is_brought_to_size():
    features = PerceptualLoss(side=64).features(torch.rand(1, 3, 20, 40))
    assert features[0].shape == (1, 64, 32, 64)


def test_missing_file_and_missing_weights_are_named(tmp_path):
    with pytest.raises(DataError, match=r"absent\.safetensors.*tusk data get vgg16"):
        load_perceptual_loss(tmp_path / "absent.safetensors")
    (tmp_path / "junk.safetensors").write_bytes(b"junk")
    with pytest.raises(DataError, match=r"junk\.safetensors.*cannot be read"):
        load_perceptual_loss(tmp_path / "junk.safetensors")
    weights = random_weights()
    del weights["conv3_2.bias"]
    save_file(weights, tmp_path / "short.safetensors")
    with pytest.raises(DataError, match=r"conv3_2\.bias"):
        load_perceptual_loss(tmp_path / "short.safetensors")


@pytest.mark.parametrize("size", [(8, 12), (7, 9)], ids=str)
def test_a_reconstruction_at_the_maps_size_is_compared_with_the_averaged_image(size):
    images = torch.rand(2, 3, *size)
    rows, columns = -(-size[0] // 2), -(-size[1] // 2)
    decoded = torch.rand(2, 3, rows, columns)
    wanted = torch.stack(
        [
            torch.stack([images[..., 2 * y : 2 * y + 2, 2 * x : 2 * x + 2].mean((-2, -1)) for x in range(columns)], -1)
            for y in range(rows)
        ],
        -2,
    )  # (2, 3, rows, columns)
    step = SimpleNamespace(
        images=images,
        shown=slice(2),
        decoded=SimpleNamespace(reconstruction=decoded),
        network=SimpleNamespace(config=SimpleNamespace(stride=2)),
    )
    config = Config()
    given = Reconstruction(config.losses.reconstruction.model_copy(update={"relative": False}), config).value(step)
    torch.testing.assert_close(given, (wanted - decoded).square().mean())
