"""Keypoints -> maps: a small Gaussian at each location, carrying score and descriptor."""

from __future__ import annotations

import torch
from torch import Tensor


def gaussian_profile(centre: Tensor, size: int, variance: float) -> Tensor:
    """centre (...,) -> (..., size): a Gaussian over the pixels 0..size-1, normalised to sum 1.

    A 2D Gaussian of equal variances is the product of two of these, normalisation included.
    """
    pixel = torch.arange(size, device=centre.device, dtype=centre.dtype)
    return (-((pixel - centre[..., None]) ** 2) / (2 * variance)).softmax(-1)


def splat_sum(xy: Tensor, score: Tensor, descriptors: Tensor, height: int, width: int, variance: float) -> Tensor:
    """Sum over keypoints of score x descriptor x Gaussian: xy (B, K, 2), score (B, K), descriptors (B, K, C).

    -> (B, C, H, W). The sum over k of (row profile) x (column profile) is a matrix product with inner size K, so the
    (B, K, C, H, W) tensor of all single maps never exists.
    """
    columns = gaussian_profile(xy[..., 0], width, variance)  # (B, K, W)
    rows = gaussian_profile(xy[..., 1], height, variance)  # (B, K, H)
    carried = (descriptors * score[..., None]).transpose(1, 2)  # (B, C, K)
    weighted = carried[..., None] * columns[:, None]  # (B, C, K, W)
    return rows.transpose(1, 2)[:, None] @ weighted  # (B, 1, H, K) @ (B, C, K, W) -> (B, C, H, W)


def splat_each(xy: Tensor, score: Tensor, descriptors: Tensor, height: int, width: int, variance: float) -> Tensor:
    """The same, one map for each keypoint: -> (B*K, C, H, W)."""
    flat = xy.flatten(0, 1)[:, None], score.flatten(0, 1)[:, None], descriptors.flatten(0, 1)[:, None]
    return splat_sum(*flat, height, width, variance)
