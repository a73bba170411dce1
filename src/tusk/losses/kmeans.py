"""Draws every descriptor to its nearest prototype (paper, equation 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from tusk.config import LossSettings, Schedule, value_at
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext


class KMeansConfig(LossSettings):
    """Draws every descriptor to its nearest prototype."""

    weight: Schedule = 0.01
    scale: Schedule | None = None
    """Factor on the distance where it becomes a probability; None: `model.type_scale`."""


@register("kmeans", KMeansConfig)
class KMeans(Loss[KMeansConfig]):
    """Over the valid keypoints of both views."""

    def value(self, step: StepContext) -> Tensor:
        share, descriptors = step.valid_share, step.valid_descriptors
        if not len(descriptors):
            return step.images.new_zeros(())
        scale = None if self.settings.scale is None else value_at(self.settings.scale, step.progress)
        return share * kmeans_loss(step.network.prototypes.log_probability(descriptors, scale))


def kmeans_loss(log_probability: Tensor) -> Tensor:
    """Equation 3: -mean_i log max_j softmax_j(-distance(D_i, P_j)), from that log-softmax (..., M)."""
    return -log_probability.amax(-1).mean()
