"""What all levels of the encoder say at a keypoint -> a vector for its type alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tusk.model.keypoints import read_bilinear


class TypeHead(nn.Module):
    """A small network on the encoder's levels, read at the keypoints.

    The decoder needs to know how a thing is turned and drawn; its type must not depend on that. With one vector for
    both, each spoils the other. Deep levels, which see most of a thing at once, also have more channels than the map
    that the descriptors come from.
    """

    def __init__(self, widths: Sequence[int], hidden: int, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(sum(widths), hidden), nn.ReLU(), nn.Linear(hidden, channels))

    def forward(self, levels: Sequence[Tensor], xy: Tensor) -> Tensor:
        """levels: (B, c, h / 2^i, w / 2^i) for i = 0, 1, ...; xy (B, K, 2) in pixels of the first -> (B, K, C)."""
        read = [read_bilinear(level, (xy + 0.5) / 2**i - 0.5) for i, level in enumerate(levels)]
        result: Tensor = self.layers(torch.cat(read, -1))
        return result
