"""Maps of the encoder must move with the image (paper, equation 4): one loss for scores, one for features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch.nn.functional as F
from torch import Tensor

from tusk.config import LossSettings, Schedule
from tusk.geometry.warp import Warp
from tusk.losses.registry import Loss, register
from tusk.model.network import standardise_map

if TYPE_CHECKING:
    from tusk.losses.context import StepContext


class ScoreEquivarianceConfig(LossSettings):
    """The score map must move with the image."""

    weight: Schedule = 0.01
    masked: bool = True
    """Leave out targets that come from outside the frame (the authors do not)."""


class FeatureEquivarianceConfig(LossSettings):
    """The feature map must move with the image."""

    weight: Schedule = 100.0
    features: Literal["raw", "unit", "standardised"] = "raw"
    """`raw` is the paper's form, which can be lowered by shrinking the features; the others cannot."""
    masked: bool = True
    """Leave out targets that come from outside the frame (the authors do not)."""

    def splits_over_images(self) -> bool:
        return self.features != "standardised"


@register("score_equivariance", ScoreEquivarianceConfig)
class ScoreEquivariance(Loss[ScoreEquivarianceConfig]):
    """Of the score map."""

    def value(self, step: StepContext) -> Tensor:
        first, second = step.encoding.score_map.split(step.pairs)
        return equivariance_loss(first, second, step.warp, masked=self.settings.masked)


@register("feature_equivariance", FeatureEquivarianceConfig)
class FeatureEquivariance(Loss[FeatureEquivarianceConfig]):
    """Of the feature map."""

    def value(self, step: StepContext) -> Tensor:
        features = step.encoding.feature_map
        if self.settings.features == "unit":
            features = unit_map(features)
        elif self.settings.features == "standardised":
            features = standardise_map(features, step.encoding.statistics)
        first, second = features.split(step.pairs)
        return equivariance_loss(first, second, step.warp, masked=self.settings.masked)


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
