"""A group norm that can settle: from then on, what else is in the image makes no difference to a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Mode = Literal["image", "watch", "settled"]


class SettlingNorm(nn.GroupNorm):
    """GroupNorm by each image's own mean and variance, later by the usual ones of the training images.

    By its own statistics the same thing looks different in a crowd than alone: the more there is in an image, the
    smaller each thing's part in its variance. In mode `watch` a training network keeps the mean of the statistics it
    meets, and from `settled` on it uses those for every image.
    """

    usual_mean: Tensor  # (groups,)
    usual_variance: Tensor  # (groups,)
    watched: Tensor  # () how many batches they are the mean of
    settled: Tensor  # () bool, so that a stored network knows it

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__(groups, channels)
        self.mode: Mode = "image"
        # How a mean over the images of this process becomes one over those of all: training sets it.
        self.over_ranks: Callable[[Tensor], Tensor] = lambda value: value
        self.register_buffer("usual_mean", torch.zeros(groups))
        self.register_buffer("usual_variance", torch.ones(groups))
        self.register_buffer("watched", torch.zeros((), dtype=torch.long))
        self.register_buffer("settled", torch.zeros((), dtype=torch.bool))

    def set_mode(self, mode: Mode) -> None:
        """What cannot settle yet, since it has watched nothing, watches first."""
        self.mode = "watch" if mode == "settled" and int(self.watched) == 0 else mode
        self.settled.fill_(self.mode == "settled")

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> the same shape."""
        if self.mode == "settled":
            each = self.num_channels // self.num_groups
            mean, variance = (usual.repeat_interleave(each) for usual in (self.usual_mean, self.usual_variance))
            return F.batch_norm(x, mean, variance, self.weight, self.bias, training=False, eps=self.eps)
        if self.mode == "watch" and self.training:
            self._watch(x.detach())
        return super().forward(x)

    @torch.no_grad()
    def _watch(self, x: Tensor) -> None:
        groups = x.reshape(len(x), self.num_groups, -1)
        variance, mean = torch.var_mean(groups, -1, correction=0)  # (B, groups) each
        self.watched += 1
        share = 1 / float(self.watched)
        self.usual_mean.lerp_(self.over_ranks(mean.mean(0)), share)
        self.usual_variance.lerp_(self.over_ranks(variance.mean(0)), share)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self.mode = "settled" if bool(self.settled) else "image"


def settling_norms(module: nn.Module) -> list[SettlingNorm]:
    """All of them within a module."""
    return [part for part in module.modules() if isinstance(part, SettlingNorm)]
