"""The same keypoints in both views of a pair of images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.geometry.sampling import sample_bilinear
from tusk.geometry.warp import Warp
from tusk.model.network import Encoding, Network

_TEMPERATURE = 0.1  # of the softmax over types: smaller is harder


@dataclass(frozen=True)
class TwoViews:
    """The second views' keypoints, and the places in the first views that they come from."""

    first: Tensor  # (n*K, C) descriptors, unit length
    second: Tensor  # (n*K, C)
    usable: Tensor  # (n*K,) bool: False where the place lies outside the first view

    def types(self, network: Network) -> tuple[Tensor, Tensor]:
        """Probabilities of the types in both views, (N, M) each, of the usable keypoints."""
        prototypes = network.prototypes.unit().detach()  # only the encoder learns from this
        first, second = (
            network.prototypes.of_types((side[self.usable] @ prototypes.T / _TEMPERATURE).softmax(-1))
            for side in (self.first, self.second)
        )
        return first, second


def two_views(
    network: Network, encoding: Encoding, warp: Warp, shape: torch.Size, is_valid: Tensor | None = None
) -> TwoViews:
    """encoding: of n first views and their second views = warp(first), images of this shape.

    is_valid (n, K) bool: which of the second views' keypoints count. None: all that were found and lie in their own
    surroundings.
    """
    pairs = len(encoding.feature_map) // 2
    height, width = shape[-2:]
    second_xy = encoding.keypoints.xy[pairs:].detach()  # (n, K, 2)
    image_xy = warp.source_points(network.to_image(second_xy), height, width)  # (n, K, 2) in the first view
    limit = image_xy.new_tensor([width - 1, height - 1])
    inside = ((image_xy >= 0) & (image_xy <= limit)).all(-1)  # (n, K)
    if is_valid is None:
        is_valid = encoding.keypoints.found[pairs:] & with_own_surroundings(network, encoding, warp, shape)

    raw = sample_bilinear(encoding.feature_map, torch.cat([network.to_map(image_xy), second_xy]))  # (2n, K, C)
    standardised = network.descriptor_space.space == "standardised"
    values = encoding.statistics.standardise(raw) if standardised else raw
    first, second = F.normalize(values, dim=-1).flatten(0, 1).chunk(2)  # (n*K, C) each
    return TwoViews(first, second, (inside & is_valid).flatten())


def with_own_surroundings(network: Network, encoding: Encoding, warp: Warp, shape: torch.Size) -> Tensor:
    """(n, K) bool: which of the second views' keypoints have their own surroundings, half an object to each side."""
    xy = network.to_image(encoding.keypoints.xy[len(encoding.feature_map) // 2 :])
    return warp.keeps(xy, shape[-2], shape[-1], network.config.window / 4)
