"""A keypoint's type should be the cluster of its nearest neighbours in memory (pseudo-labels)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor

from tusk.config import LossSettings
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext

_TEMPERATURE = 0.1


class PseudoLabelsConfig(LossSettings):
    """A keypoint's type should be the cluster of most of its nearest neighbours in memory, once clusters have been
    found. Clusters need not be round: by their mean direction alone, many descriptors would belong to another."""


@register("pseudo_labels", PseudoLabelsConfig)
class PseudoLabels(Loss[PseudoLabelsConfig]):
    """Over the valid keypoints of both views; 0 as long as there are no clusters."""

    def value(self, step: StepContext) -> Tensor:
        share, descriptors = step.valid_share, step.valid_descriptors
        if step.memory.groups is None or not len(descriptors):
            return step.images.new_zeros(())
        prototypes = step.network.prototypes.unit().detach()
        labels = step.memory.pseudo_labels(descriptors.detach(), len(prototypes))  # (N, M)
        return share * pseudo_label_loss(descriptors, prototypes, labels)


def pseudo_label_loss(descriptors: Tensor, prototypes: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the types of descriptors (N, C), by prototypes (M, C), with soft labels (N, M)."""
    return F.cross_entropy(descriptors @ prototypes.T / _TEMPERATURE, labels)
