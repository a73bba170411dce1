"""Every keypoint is known again in the other view, among all keypoints of the batch (InfoNCE)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def info_nce_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """first, second (N, C), unit length: the same keypoints in two views. Mean cross-entropy of picking the right one.

    It asks for descriptors that tell keypoints apart and do not feel the warp; no types are needed for it.
    """
    if len(first) < 2:
        return first.sum() * 0  # nothing to be told apart from
    likeness = first @ second.T / temperature  # (N, N)
    own = torch.arange(len(first), device=first.device)
    return (F.cross_entropy(likeness, own) + F.cross_entropy(likeness.T, own)) / 2
