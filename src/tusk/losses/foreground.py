"""Scores should be high where the background alone does not explain the image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.geometry.sampling import sample_bilinear

_BARE = 0.2  # unexplained at the most where nothing stands: a quarter of the mean error


@torch.no_grad()
def background_residual(image: Tensor, behind: Tensor, stride: int) -> Tensor:
    """image (B, 3, H, W), the background behind it (B or 1, 3, H, W) -> (B, 1, H/s, W/s) in [0, 1).

    The squared difference as a share of itself and the image's mean: near 1 on things, near 0 where nothing stands,
    and a pale thing still counts beside a bright one.
    """
    error = (image - behind).square().mean(1, keepdim=True)
    error = F.avg_pool2d(error, stride, ceil_mode=True)  # (B, 1, H/s, W/s)
    return error / (error + error.mean((1, 2, 3), keepdim=True) + 1e-8)


@torch.no_grad()
def on_background(residual_map: Tensor, xy: Tensor) -> Tensor:
    """xy (B, K, 2) in pixels of the map (B, 1, h, w) -> (B, K) bool: which keypoints lie on the background."""
    return sample_bilinear(residual_map, xy)[..., 0] <= _BARE


def foreground_loss(score_map: Tensor, residual_map: Tensor, window: int) -> Tensor:
    """1 - correlation of the scores (B, 1, h, w) with what is unexplained, blurred over a thing's window: mean over B.

    Blurred, the map is highest in the middle of things and not along their edges, and so will the scores be.
    """
    blurred = F.avg_pool2d(residual_map, window, 1, window // 2, count_include_pad=False)
    score, wanted = score_map.flatten(1), blurred.flatten(1)  # (B, h*w)
    score = score - score.mean(1, keepdim=True)
    wanted = wanted - wanted.mean(1, keepdim=True)
    return (1 - F.cosine_similarity(score, wanted, dim=1, eps=1e-6)).mean()
