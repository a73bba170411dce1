"""The appearance of keypoints: small patches of the image, independent of what the network has learnt."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_SIDE = 16


def crop_patches(images: Tensor, xy: Tensor, reach: float) -> Tensor:
    """images (B, 3, H, W) in [0, 1], xy (B, K, 2) in their pixels -> uint8 (B, K, 3, 16, 16): squares of side `reach`.

    What lies outside the image is black.
    """
    batch, keypoints = xy.shape[:2]
    size = xy.new_tensor([images.shape[-1], images.shape[-2]])
    step = ((torch.arange(_SIDE, device=xy.device, dtype=xy.dtype) + 0.5) / _SIDE - 0.5) * reach
    offset = torch.stack(torch.meshgrid(step, step, indexing="xy"), -1)  # (16, 16, 2)
    place = (xy[:, :, None, None] + offset + 0.5) * 2 / size - 1  # (B, K, 16, 16, 2)
    rows = F.grid_sample(images, place.flatten(1, 2), align_corners=False)  # (B, 3, K*16, 16)
    rows = rows.view(batch, 3, keypoints, _SIDE, _SIDE).transpose(1, 2)
    return (rows * 255).round().clamp(0, 255).to(torch.uint8)


def patch_vectors(patches: Tensor) -> Tensor:
    """uint8 (N, 3, 16, 16) -> (N, 768) of unit length.

    The middle counts most: what is further off often belongs to another object.
    """
    step = (torch.arange(_SIDE, device=patches.device) + 0.5) / _SIDE - 0.5
    square = step[:, None] ** 2 + step**2
    weight = (-square / (2 * 0.3**2)).exp()  # (16, 16)
    return F.normalize((patches.float() * weight).flatten(1), dim=-1)


def most_similar(vectors: Tensor, others: Tensor, count: int) -> Tensor:
    """Vectors (N, 768) and (P, 768) -> (N, count): the numbers of the others that each is most similar to."""
    return (vectors @ others.T).topk(min(count, len(others)), dim=-1).indices
