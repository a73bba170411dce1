"""What the encoder sees must move with the image (paper, equation 4)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from tusk.geometry.warp import Warp


def equivariance_loss(first: Tensor, second: Tensor, warp: Warp, *, masked: bool = True) -> Tensor:
    """Mean squared difference between T(map of the image) and the map of T(image), both (B, C, H, W).

    `masked` leaves out what comes from outside the frame, where there is nothing to compare with; the authors do not.
    """
    target = warp.maps(first)
    difference = (second - target).square()
    if not masked:
        return difference.mean()
    inside = warp.inside(first.shape[-2], first.shape[-1])  # (B, 1, H, W)
    # The mean of each image first: a batch in parts then gives the same as the batch at once.
    each = (difference.mean(1, keepdim=True) * inside).sum((1, 2, 3)) / inside.sum((1, 2, 3)).clamp_min(1)  # (B,)
    return each.mean()


def unit_map(feature_map: Tensor) -> Tensor:
    """(B, C, H, W) with every pixel's features of length 1: their equivariance cannot be had by shrinking them."""
    return F.normalize(feature_map, dim=1)
