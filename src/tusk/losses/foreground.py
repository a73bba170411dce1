"""Scores should be high where the background alone does not explain the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from tusk.config import LossSettings, ModelConfig
from tusk.geometry.sampling import sample_bilinear
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext

_ON_BACKGROUND = 0.2  # residual at the most where there is only background: a quarter of the mean error


class ForegroundConfig(LossSettings):
    """Scores should be high where the background alone does not explain the image."""

    window: Annotated[int, Field(ge=3, le=4095)] | None = None
    """The residual is blurred over a window of this many image pixels; None: over `model.window`."""

    def refusal(self, model: ModelConfig) -> str | None:
        return "needs model.background: it compares the image with that" if model.background == "none" else None


@register("foreground", ForegroundConfig)
class Foreground(Loss[ForegroundConfig]):
    """Of both views."""

    def value(self, step: StepContext) -> Tensor:
        assert step.residual is not None  # as `refusal` has it
        model = step.network.config
        window = model.window_on_map(self.settings.window or model.window)
        return foreground_loss(step.encoding.score_map, step.residual, window)


@torch.no_grad()
def background_residual(image: Tensor, background: Tensor, stride: int) -> Tensor:
    """image (B, 3, H, W), its background (B or 1, 3, H, W) -> (B, 1, H/s, W/s) in [0, 1).

    The squared difference as a share of itself and the image's mean: near 1 on objects, near 0 on the background, and
    a pale object still counts beside a bright one.
    """
    error = F.avg_pool2d(
        (image - background).square().mean(1, keepdim=True), stride, ceil_mode=True
    )  # (B, 1, H/s, W/s)
    return error / (error + error.mean((1, 2, 3), keepdim=True) + 1e-8)


@torch.no_grad()
def on_background(residual_map: Tensor, xy: Tensor) -> Tensor:
    """xy (B, K, 2) in pixels of the map (B, 1, h, w) -> (B, K) bool: which keypoints lie on the background."""
    return sample_bilinear(residual_map, xy)[..., 0] <= _ON_BACKGROUND


def foreground_loss(score_map: Tensor, residual_map: Tensor, window: int) -> Tensor:
    """1 - correlation of the scores (B, 1, h, w) with the residual, blurred over an object's window: mean over B.

    Blurred, the map is highest in the middle of objects and not along their edges, and so will the scores be.
    """
    blurred = F.avg_pool2d(residual_map, window, 1, window // 2, count_include_pad=False)
    score, wanted = score_map.flatten(1), blurred.flatten(1)  # (B, h*w)
    score = score - score.mean(1, keepdim=True)
    wanted = wanted - wanted.mean(1, keepdim=True)
    return (1 - F.cosine_similarity(score, wanted, dim=1, eps=1e-6)).mean()
