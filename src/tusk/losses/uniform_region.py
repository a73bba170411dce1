"""A keypoint in a uniform region marks nothing: its score should be low."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config import LossSettings
from tusk.geometry.running import running_max
from tusk.geometry.sampling import sample_bilinear
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext

_UNIFORM = 0.04  # between the darkest and the brightest pixel, of 1: less than an object, more than a camera's noise


class UniformRegionConfig(LossSettings):
    """A keypoint in a uniform region, where half a window around it has one colour, marks nothing: its score should be
    low, and it is of no type. No other loss notices: its place is reconstructed rightly, and the object that is missed
    for it has no keypoint that could learn from that."""


@register("uniform_region", UniformRegionConfig)
class UniformRegion(Loss[UniformRegionConfig]):
    """Of the keypoints of both views."""

    def value(self, step: StepContext) -> Tensor:
        return uniform_region_loss(step.encoding.keypoints.score, step.uniform)


@torch.no_grad()
def in_uniform_region(images: Tensor, xy: Tensor, window: int) -> Tensor:
    """images (B, 3, H, W) in [0, 1], xy (B, K, 2) in their pixels -> (B, K) bool: whether all within the odd window
    around it has one colour."""
    both = _highest(torch.cat([images, -images], 1), window)  # (B, 6, H, W)
    highest, lowest = both[:, :3], -both[:, 3:]
    spread = (highest - lowest).amax(1, keepdim=True)  # (B, 1, H, W)
    return sample_bilinear(spread, xy)[..., 0] < _UNIFORM


def _highest(values: Tensor, window: int) -> Tensor:
    """(B, C, H, W) -> the same: the largest of each window, what lies outside not counted."""
    reach = window // 2
    padded = F.pad(values, (reach, reach, reach, reach), value=-torch.inf)
    return running_max(running_max(padded, window, -1), window, -2)


def uniform_region_loss(score: Tensor, uniform: Tensor) -> Tensor:
    """score (B, K) of the keypoints, uniform (B, K) bool: whether each lies in a uniform region -> how high the scores
    of those are, as a mean over all keypoints."""
    return (score * uniform).mean()
