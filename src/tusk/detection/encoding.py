"""What the encoder makes of one picture, before anything is relocated or filtered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tusk.config import Config
from tusk.data.framing import fit_picture
from tusk.detection.inputs import OneImage, to_picture
from tusk.model.network import Network

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Encoding:
    """Maps, and K keypoints; the maps are of the picture as the network gets it, h x w at its stride."""

    feature_map: FloatArray  # (C, h, w)
    score_map: FloatArray  # (h, w)
    xy: FloatArray  # (K, 2) in pixels of the picture
    score: FloatArray  # (K,)
    descriptors: FloatArray  # (K, C)
    type: npt.NDArray[np.int64]  # (K,)


@torch.no_grad()
def encode_picture(network: Network, config: Config, image: OneImage) -> Encoding:
    """The picture is framed as in `detect`, and goes through the encoder as a whole."""
    data = config.data
    picture, name = to_picture(image, 0, None if data.fit == "tiles" else 2 * data.size)
    fitted = fit_picture(picture, name, data, config.model.multiple)
    pixels = torch.from_numpy(fitted.pixels[None]).to(network.device).permute(0, 3, 1, 2)  # (1, 3, H, W)
    encoding = network.eval().encode(pixels.float() / 255)
    points = encoding.keypoints
    xy, inside = fitted.to_original(network.to_image(points.xy)[0].double().cpu().numpy())
    kept = inside & points.found[0].cpu().numpy()  # (K,)
    return Encoding(
        feature_map=encoding.feature_map[0].cpu().numpy(),
        score_map=encoding.score_map[0, 0].cpu().numpy(),
        xy=xy[kept].astype(np.float32),
        score=points.score[0].cpu().numpy()[kept],
        descriptors=encoding.descriptors[0].cpu().numpy()[kept],
        type=network.prototypes(encoding.descriptors)[0].argmax(-1).cpu().numpy()[kept],
    )
