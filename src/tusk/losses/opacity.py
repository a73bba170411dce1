"""Layers should be transparent where the background explains the image as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor

from tusk.config import LossSettings, ModelConfig, Schedule, value_at
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext


class OpacityConfig(LossSettings):
    """Layers should be transparent where the background explains the image as well, so that masks end where objects
    end. The weight is that of the share of the image that layers cover."""

    binarity: Schedule = 0.0
    """Weight of cover x (1 - cover): a pixel should belong to the background or to layers, not half to each. On black,
    a dim pixel could otherwise be reconstructed as a bright one that is mostly transparent."""

    on_background: bool = False
    """Count only what layers cover of the background: on a thing they may be as opaque as they like."""

    def is_used(self) -> bool:
        return self.weight != 0 or self.binarity != 0

    def refusal(self, model: ModelConfig) -> str | None:
        why = "needs model.background: without one, layers have to cover everything"
        return why if model.background == "none" else None


@register("opacity", OpacityConfig)
class Opacity(Loss[OpacityConfig]):
    """Of the images that are reconstructed; both of its weights are in its value."""

    def is_active(self, progress: float) -> bool:
        return self.weight(progress) > 0 or value_at(self.settings.binarity, progress) > 0

    def forward(self, step: StepContext) -> Tensor:
        cover = step.decoded.cover
        assert cover is not None and step.residual is not None  # as `refusal` has it
        binarity = value_at(self.settings.binarity, step.progress)
        where: Tensor | None = None
        if self.settings.on_background:
            where = F.interpolate(1 - step.residual[step.shown], cover.shape[-2:], mode="bilinear", align_corners=False)
        return opacity_loss(cover, self.weight(step.progress), binarity, where)


def opacity_loss(cover: Tensor, weight: float, binarity: float, where: Tensor | None = None) -> Tensor:
    """cover (B, 1, H, W): the sum of alpha over the layers, from 0 to 1; where: how much it counts in each pixel."""
    counted = weight if where is None else weight * where
    return (cover * (counted + binarity * (1 - cover))).mean()
