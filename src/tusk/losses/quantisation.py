"""Vector quantisation, an alternative of the paper's ablation: the decoder gets prototypes instead of descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor

from tusk.config import LossSettings
from tusk.losses.registry import Loss, register
from tusk.model.prototypes import distances

if TYPE_CHECKING:
    from tusk.losses.context import StepContext

_COMMITMENT = 0.25


class QuantisationConfig(LossSettings):
    """With a weight above 0, every descriptor is replaced by its nearest prototype before it is decoded (vector
    quantisation), once the warm-up is over; `losses.prototypes.kind` is then best `k-means`."""


@register("quantisation", QuantisationConfig)
class Quantisation(Loss[QuantisationConfig]):
    """How far descriptors and the prototypes that replace them are apart."""

    def value(self, step: StepContext) -> Tensor:
        return step.images.new_zeros(()) if step.quantised is None else step.quantised[1]


def vector_quantisation(
    descriptors: Tensor, prototypes: Tensor, commitment: float = _COMMITMENT
) -> tuple[Tensor, Tensor]:
    """Descriptors (..., C) replaced by their nearest prototype of (M, C).

    -> quantised (..., C), whose gradient goes straight through to the descriptors, and the loss that draws
    prototypes to descriptors and, weighted by `commitment`, descriptors to prototypes.
    """
    nearest = distances(descriptors.detach(), prototypes.detach(), "mean-square").argmin(-1)
    chosen = prototypes[nearest]  # (..., C)
    loss = F.mse_loss(chosen, descriptors.detach()) + commitment * F.mse_loss(descriptors, chosen.detach())
    return descriptors + (chosen - descriptors).detach(), loss
