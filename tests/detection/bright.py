"""A real network whose weights are set by hand so that its score follows the brightness of the image."""

import numpy as np
import torch
import torch.nn.functional as functional
from torch import nn

from tusk.config import Config
from tusk.data.flat_field import LEVEL
from tusk.detection.predictor import Predictor
from tusk.model.network import Network
from tusk.model.storage import StoredModel, load_model
from tusk.weights import shipped_models


def shipped(name):
    """A model of the package, as it is stored."""
    return load_model(shipped_models()[name])


def detect(model, images, *args, **options):
    """What `tusk detect` gives."""
    return Predictor(model, *args, **options).detect(images)


def bright_model(size=64, **data):
    """Finds the brightest place; everything else about it is as in any other network."""
    settings = {"keypoints": 1, "types": 3, "channels": 2, "width": 2, "levels": 1, "window": 13}
    config = Config.model_validate({"model": settings, "data": {"size": size, **data}})
    network = Network(config.model).eval()
    with torch.no_grad():
        block, head = network.encoder.unet.down[0], network.encoder.head
        for conv in (block.conv1, block.conv2, network.encoder.unet.last, head[0], head[3]):
            middle = conv.weight.shape[-1] // 2
            conv.weight.zero_()
            conv.weight[:, :, middle, middle] = 1 / conv.weight.shape[1]
            conv.bias.zero_()
        head[4].weight.fill_(0.2)  # far from where the sigmoid is flat
    return StoredModel(network, config)


class _DifferenceEncoder(nn.Module):
    """The score is the difference from the background's even grey, and everything has one size."""

    def forward(self, image):
        difference = functional.avg_pool2d((image - LEVEL).abs().mean(1, keepdim=True), 2)
        score = (2 * functional.avg_pool2d(difference, 3, 1, 1)).clamp(0, 0.99)
        return torch.cat([difference, 1 - difference], 1), score, torch.full_like(score, 1.5)


def sized_model(size=64, **data):
    """Finds what differs from the background; keypoints have sizes, and an untrained decoder draws discs for them."""
    settings = {
        "keypoints": 4, "types": 3, "channels": 2, "width": 2, "levels": 1, "stride": 2, "window": 5, "norm": "channel",
        "sizes": (4.0, 16.0), "decode": "layers", "background": "flat",
    }  # fmt: skip
    detection = {"min_explained": -100.0}  # discs of any colour
    config = Config.model_validate({"model": settings, "data": {"size": size, **data}, "detection": detection})
    network = Network(config.model).eval()
    network.encoder = _DifferenceEncoder()
    return StoredModel(network, config)


def blob(width, height, x, y, sigma, dtype=np.uint8):
    """(H, W) black, with a bright round spot at (x, y)."""
    column = np.exp(-((np.arange(width) - x) ** 2) / (2 * sigma**2))
    row = np.exp(-((np.arange(height) - y) ** 2) / (2 * sigma**2))
    return np.rint(np.outer(row, column) * np.iinfo(dtype).max).astype(dtype)
