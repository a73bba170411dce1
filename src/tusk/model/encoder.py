"""Image -> feature map and score map."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.model.unet import Padding, UNet


class Encoder(nn.Module):
    """A U-Net for the features and a small head on them for the score of every pixel.

    With a stride s the image is folded s x s pixels to a channel first, so that everything runs at 1/s of the size.
    """

    def __init__(self, channels: int, width: int, levels: int, stride: int, padding: Padding = "zeros") -> None:
        super().__init__()
        self.stride = stride
        self.unet = UNet(3 * stride**2, channels, width, levels, padding)
        self.head = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, padding_mode=padding),
            nn.GroupNorm(channels, channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, 1, 3, padding=1, padding_mode=padding),
            # One group over the whole map: the score ranks the places of one image, it does not tell "empty".
            nn.GroupNorm(1, 1),
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """image (B, 3, H, W) in [0, 1] -> feature map (B, C, H/s, W/s), score map (B, 1, H/s, W/s) in (0, 1)."""
        folded = F.pixel_unshuffle(image, self.stride)  # (B, 3*s*s, H/s, W/s)
        feature_map: Tensor = self.unet(folded)  # (B, C, H/s, W/s)
        score_map = torch.sigmoid(self.head(feature_map))  # (B, 1, H/s, W/s)
        return feature_map, score_map
