"""Image -> feature map and score map."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.data.flat_field import LEVEL, THRESHOLD
from tusk.model.unet import Conv3x3, Norm, Padding, UNet

_BEYOND = 0.3  # sizes may lie so far beyond the given ones, as a logarithm
_RARE = -3.0  # logit of the score before training: few places are things


class Encoder(nn.Module):
    """A U-Net for the features and a small head on them for the score of every pixel.

    With a stride s the image is folded s x s pixels to a channel first, so that everything runs at 1/s of the size.
    With `sizes` (diameters in image pixels) the score of a pixel tells by itself whether there is a thing, and a second
    head gives the radius that it would have.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        levels: int,
        stride: int,
        padding: Padding = "zeros",
        norm: Norm = "group",
        sizes: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        self.stride = stride
        self.unet = UNet(3 * stride**2, channels, width, levels, padding, norm)
        self.sizes = sizes
        if sizes is not None:
            self.head, self.radius_head = (
                nn.Sequential(Conv3x3(width, width, padding), nn.SiLU(), _last(width, at))
                for at in (_RARE, self._log_radius(math.sqrt(sizes[0] * sizes[1])))
            )
            return
        self.head = nn.Sequential(
            Conv3x3(channels, channels, padding),
            nn.GroupNorm(channels, channels),
            nn.ReLU(inplace=True),
            Conv3x3(channels, 1, padding),
            # One group over the whole map: the score ranks the places of one image, it does not tell "empty".
            nn.GroupNorm(1, 1),
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """image (B, 3, H, W) in [0, 1] -> feature map (B, C, H/s, W/s), score map (B, 1, H/s, W/s) in (0, 1), and the
        radius of a thing at each place, (B, 1, H/s, W/s) in pixels of the maps, where sizes are learnt."""
        if self.sizes is None:
            feature_map: Tensor = self.unet(F.pixel_unshuffle(image, self.stride))  # (B, C, H/s, W/s)
            return feature_map, torch.sigmoid(self.head(feature_map)), None
        # The even grey of the background as 0, and a clear difference from it as 1: beside a grey of a half, the first
        # convolutions would hardly notice a pale thing.
        difference = (image - LEVEL) / (2 * THRESHOLD)
        trunk = self.unet.trunk(F.pixel_unshuffle(difference, self.stride))  # (B, width, H/s, W/s)
        log_radius = self.radius_head(trunk).clamp(*self.log_radius_range())
        return self.unet.last(trunk), torch.sigmoid(self.head(trunk)), log_radius.exp()

    def log_radius_range(self) -> tuple[float, float]:
        """Where sizes are learnt: the least and the largest that there can be, as the logarithm of a radius."""
        assert self.sizes is not None
        least, most = (self._log_radius(size) for size in self.sizes)
        return least - _BEYOND, most + _BEYOND

    def _log_radius(self, size: float) -> float:
        return math.log(size / 2 / self.stride)


def _last(inputs: int, start: float) -> nn.Conv2d:
    """A 1x1 convolution that gives about `start` everywhere before training."""
    convolution = nn.Conv2d(inputs, 1, 1)
    assert convolution.bias is not None
    nn.init.constant_(convolution.bias, start)
    return convolution
