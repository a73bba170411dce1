"""A real network with sizes, whose encoder is replaced by what finds discs without learning."""

import torch
from torch import nn

from tests.model.test_unet import SIZED
from tusk.config import Config
from tusk.data.flat_field import LEVEL
from tusk.geometry.blobs import blob_radii, thing_responses
from tusk.geometry.foreground import flat_foreground
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel


class DiscEncoder(nn.Module):
    """The score of a place is its response, and its radius the one that responds most."""

    def forward(self, image):
        radii = blob_radii(1.2, 20)
        foreground = flat_foreground(image, torch.full_like(image[:1], LEVEL), 2)
        best = thing_responses(foreground, radii).max(1, keepdim=True)
        features = torch.ones(len(image), 6, *foreground.shape[-2:])
        return features, best.values.clamp(1e-5, 1), torch.tensor(radii)[best.indices]


def disc_model(colour=0.05, size=96, **settings):
    """Finds discs of any size on an even background; each is drawn as a disc of that grey after flat-field correction.

    settings: by their part, such as `detection={...}`.
    """
    data = {"size": size, "fit": "tiles", "contrast": "flat", **settings.pop("data", {})}
    detection = {"min_score": 0.15, "min_explained": 0.3, **settings.pop("detection", {})}
    config = Config.model_validate({"data": data, "model": {**SIZED, **settings}, "detection": detection})
    network = seeded_network(config.model, 0).eval()
    network.encoder = DiscEncoder()
    with torch.no_grad():
        network.decoder.tint.weight.zero_()
        network.decoder.tint.bias.fill_(float(torch.tensor(colour).logit()))
    return StoredModel(network, config)
