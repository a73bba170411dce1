"""What the feature map says at a keypoint, brought to unit length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Space = Literal["unit", "standardised"]


@dataclass(frozen=True)
class Statistics:
    """Mean and deviation of every channel over the keypoints of a batch (or their running averages)."""

    mean: Tensor  # (C,)
    std: Tensor  # (C,)

    def standardise(self, values: Tensor) -> Tensor:
        """values (..., C) -> (..., C) with mean 0 and deviation 1 in every channel."""
        return (values - self.mean) / self.std


class DescriptorSpace(nn.Module):
    """Raw readings of the feature map -> descriptors of length 1.

    `unit` only divides by the length (the paper). `standardised` first takes away the mean and the scale of every
    channel over the batch: without that, what all keypoints have in common fills most of the unit sphere and the
    differences between types are left with a small patch of it.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, channels: int, space: Space, momentum: float = 0.05) -> None:
        super().__init__()
        self.space = space
        self.momentum = momentum
        # How a mean over the keypoints of this process becomes one over those of all: training sets it.
        self.over_ranks: Callable[[Tensor], Tensor] = _itself
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_variance", torch.ones(channels))

    def statistics(self, raw: Tensor, weight: Tensor | None = None) -> Statistics:
        """raw (B, K, C): of this batch while training (and remembered), the remembered ones in use.

        weight (B, K): how much each counts; None: all alike. Slots that hold no thing would hide how things differ.
        """
        if not self.training or self.space == "unit":
            return Statistics(self.running_mean, (self.running_variance + 1e-6).sqrt())
        flat = raw.flatten(0, 1)  # (B*K, C)
        if weight is None:
            mean = self.over_ranks(flat.mean(0))
            variance = self.over_ranks((flat - mean).square().mean(0))
        else:
            share = weight.detach().flatten()[:, None]  # (B*K, 1)
            share = share / self.over_ranks(share.sum()).clamp_min(1e-6)
            mean = self.over_ranks((share * flat).sum(0))
            variance = self.over_ranks((share * (flat - mean).square()).sum(0))
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_variance.lerp_(variance, self.momentum)
        return Statistics(mean, (variance + 1e-6).sqrt())

    def forward(self, raw: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Statistics]:
        """raw (B, K, C) -> descriptors (B, K, C) of length 1, and the statistics that were used (see there)."""
        statistics = self.statistics(raw, weight)
        values = statistics.standardise(raw) if self.space == "standardised" else raw
        return F.normalize(values, dim=-1), statistics


def _itself(value: Tensor) -> Tensor:
    return value
