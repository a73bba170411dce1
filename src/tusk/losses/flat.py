"""A keypoint on flat ground marks nothing: its score should be low."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.model.keypoints import read_bilinear

_FLAT = 0.04  # between the darkest and the brightest pixel, of 1: less than a thing, more than a camera's noise


@torch.no_grad()
def on_flat_ground(images: Tensor, xy: Tensor, window: int) -> Tensor:
    """images (B, 3, H, W) in [0, 1], xy (B, K, 2) in their pixels -> (B, K) bool: whether all within the odd window
    around it has one colour."""
    reach = window // 2
    highest = F.max_pool2d(images, window, 1, reach)  # what lies outside does not count
    lowest = -F.max_pool2d(-images, window, 1, reach)
    spread = (highest - lowest).amax(1, keepdim=True)  # (B, 1, H, W)
    return read_bilinear(spread, xy)[..., 0] < _FLAT


def flat_loss(score: Tensor, flat: Tensor) -> Tensor:
    """score (B, K) of the keypoints, flat (B, K) bool -> how high the scores of those on flat ground are: a mean over
    all keypoints."""
    return (score * flat).mean()
