"""Every keypoint is recognised in the other view, among all keypoints of the batch (InfoNCE)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config import LossSettings, Schedule, value_at
from tusk.config.base import Positive
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext


class InfoNCEConfig(LossSettings):
    """A keypoint should be recognised in the other view among all keypoints of the batch."""

    temperature: Positive = 0.2
    neighbours: Schedule = 0.0
    """Share of nearest-neighbour contrast (NNCLR): the keypoint's most similar one in other images (of
    `training.memory`) takes the place of its own other view. Two views share every detail; nearest neighbours share
    what kind of object they are."""

    def splits_over_images(self) -> bool:
        return False


@register("info_nce", InfoNCEConfig)
class InfoNCE(Loss[InfoNCEConfig]):
    """Over the keypoints of all processes that both views show."""

    def value(self, step: StepContext) -> Tensor:
        views, gather = step.two_views, step.ranks.all_gather_with_grad
        usable = gather(views.usable.to(step.images.dtype)) > 0.5
        first, second = (gather(side)[usable] for side in (views.first, views.second))  # (N, C) each
        return self.contrast(first, second, step)

    def contrast(self, first: Tensor, second: Tensor, step: StepContext) -> Tensor:
        """first, second (N, C): the same keypoints in two views."""
        temperature = self.settings.temperature
        loss = info_nce_loss(first, second, temperature)
        share = value_at(self.settings.neighbours, step.progress)
        if share == 0 or not len(step.memory):
            return loss
        one = info_nce_loss(step.nearest_in_memory(first), second, temperature)
        other = info_nce_loss(step.nearest_in_memory(second), first, temperature)
        return loss.lerp((one + other) / 2, share)


def info_nce_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """first, second (N, C), unit length: the same keypoints in two views. Mean cross-entropy of picking the right one.

    It asks for descriptors that distinguish keypoints and do not depend on the warp; no types are needed for it.
    """
    if len(first) < 2:
        return first.sum() * 0  # nothing to be distinguished from
    similarity = first @ second.T / temperature  # (N, N)
    own = torch.arange(len(first), device=first.device)
    return (F.cross_entropy(similarity, own) + F.cross_entropy(similarity.T, own)) / 2
