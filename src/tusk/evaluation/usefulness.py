"""What single points and types are worth, without a label: points that change nothing, types that are mere places."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

FloatArray = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

_IDLE = 0.1  # of a fair share of what the points of a picture explain
_LEAST_OF_A_TYPE = 5  # points: fewer say nothing about where a type's neighbours are


def idle_points(gain: Tensor, found: Tensor, error: Tensor, images: Tensor) -> Tensor:
    """(N, K) bool: the points whose removal changes little.

    gain, found (N, K); error (N,), mean squared; images (N, 3, H, W), uint8. All points of a picture together explain
    what its reconstruction is better than the mean picture by. A point is idle where its own gain is below a tenth of
    what each would have if they shared that alike.
    """
    values = images.float() / 255
    spread = (values - values.mean(0)).square().mean(1).sum((1, 2))  # (N,) in the unit of gains
    if len(images) < 2:
        spread = (values - values.mean((2, 3), keepdim=True)).square().mean(1).sum((1, 2))
    explained = (spread - error * images.shape[-2] * images.shape[-1]).clamp_min(0)
    fair = explained / found.sum(1).clamp_min(1)
    return found & (gain < torch.clamp_min(_IDLE * fair, 1e-6)[:, None])


def types_as_places(xy: FloatArray, found: BoolArray, types: IntArray) -> float:
    """How well a point's type foretells where its nearest neighbour lies: share of the variance of the offset to it,
    from 0 (not at all) to 1; xy (N, K, 2), found and types (N, K).

    Kinds of things lie anywhere to each other. Places on one thing (left edge, right edge) have their neighbours at
    fixed offsets. With n points of m types, the variance is corrected for the m means that are taken from it.
    """
    offsets, labels = [], []
    for places, there, own in zip(xy, found, types, strict=True):
        points = places[there]
        if len(points) < 2:
            continue
        apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
        np.fill_diagonal(apart, np.inf)
        offsets.append(points[apart.argmin(1)] - points)
        labels.append(own[there])
    if not offsets:
        return 0.0
    offset, label = np.concatenate(offsets), np.concatenate(labels)
    counts = np.bincount(label)
    common = counts[label] >= _LEAST_OF_A_TYPE
    offset, label = offset[common], label[common]
    number, used = len(offset), len(np.unique(label))
    if used < 2 or number <= used:
        return 0.0
    total = float(np.square(offset - offset.mean(0)).sum())
    within = sum(
        float(np.square(offset[label == one] - offset[label == one].mean(0)).sum()) for one in np.unique(label)
    )
    if total <= 0:
        return 0.0
    return max(0.0, 1 - (within / (number - used)) / (total / (number - 1)))
