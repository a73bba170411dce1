"""Blobs of what is not background teach where things are and how large they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from tusk.config import LossSettings, ModelConfig
from tusk.config.base import NotNegative
from tusk.geometry.blobs import blob_radii, find_blobs, thing_responses
from tusk.geometry.components import find_components
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext

_MOST = 128  # blobs of an image, before those that overlap a better one are left out
_NARROW, _NARROWEST = 0.35, 0.7  # deviation of a blob's place in the target, in radii, and at least in pixels
_POWER, _NEAR = 2, 4  # exponents of the focal loss
_LEAST, _BETA = 1e-4, 0.1
_UNKNOWN = 0.98  # a target that the focal loss takes for no thing and hardly tells not to be one


class BlobsConfig(LossSettings):
    """Scores and sizes should follow the blobs of what is not background. The blobs are only a teacher: they break
    rings, join what touches, and miss pale things, each time in another way; the network learns what they agree on."""

    least: Annotated[float, Field(gt=0, lt=1)] = 0.14
    """Response from which on it counts; a lone disc has about 1, a faint or partly hidden thing has less."""
    connected: Annotated[float, Field(gt=0)] | None = None
    """Not blobs teach, but what hangs together, for things with arms, corners or holes. A larger diameter than this, in
    pixels, is taken for several things that touch, and teaches nothing."""
    size_weight: NotNegative = 5.0
    """Weight of the sizes beside the scores."""

    def refusal(self, model: ModelConfig) -> str | None:
        return "needs model.sizes: it teaches them" if model.sizes is None else None


@register("blobs", BlobsConfig)
class Blobs(Loss[BlobsConfig]):
    """Of both views."""

    def value(self, step: StepContext) -> Tensor:
        encoding, model = step.encoding, step.network.config
        assert encoding.radius_map is not None and model.sizes is not None and step.residual is not None
        with torch.no_grad():
            xy, radius, found, unknown = self._things(step.residual, model)
            last = max(1, int((found * torch.arange(1, found.shape[1] + 1, device=found.device)).max()))
            xy, radius, found = xy[:, :last], radius[:, :last], found[:, :last]  # most slots are empty in all images
            target = blob_target(xy, radius, found, (step.residual.shape[-2], step.residual.shape[-1]))
            if unknown is not None:
                target = torch.where(unknown, target.clamp_min(_UNKNOWN), target)
        place = (xy[..., 1] * target.shape[-1] + xy[..., 0]).long()  # (B, N)
        learnt = encoding.radius_map.flatten(1).gather(1, place)  # (B, N)
        off = F.smooth_l1_loss(learnt.log(), radius.log(), reduction="none", beta=_BETA)
        # Over the things of all processes: a mean of means would count those of a sparse part of the batch for more.
        counts = step.ranks.all_gather_with_grad(found.sum()[None].to(off.dtype))  # (world,)
        count = counts.sum().clamp_min(1) / len(counts)
        return focal_loss(encoding.score_map, target, count) + self.settings.size_weight * (off * found).sum() / count

    def _things(self, residual: Tensor, model: ModelConfig) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """residual (B, 1, h, w) -> places (B, N, 2), radii (B, N), which there are (B, N) bool, and where nothing is
        known (B, 1, h, w) bool."""
        assert model.sizes is not None
        smallest, largest = (size / 2 / model.stride for size in model.sizes)
        if self.settings.connected is None:
            radii = blob_radii(smallest, largest)
            xy, radius, response = find_blobs(thing_responses(residual, radii), radii, self.settings.least, _MOST)
            return xy, radius, response > 0, None
        pieces = find_components(residual[:, 0] > 0.5, _MOST)
        # Of what the edge cuts off, neither middle nor size is known.
        clear = (pieces.radius <= self.settings.connected / 2 / model.stride) & ~pieces.cut
        doubtful = F.pad(pieces.found & ~clear, (0, 1))  # (B, N + 1): the last for the background
        unknown = doubtful.gather(1, pieces.label.flatten(1)).view_as(residual)
        found = pieces.found & clear & (pieces.radius >= smallest)
        return pieces.xy.round(), pieces.radius.clamp(smallest, largest), found, unknown


def blob_target(xy: Tensor, radius: Tensor, found: Tensor, size: tuple[int, int]) -> Tensor:
    """xy (B, N, 2), radius (B, N), found (B, N) bool -> (B, 1, h, w): 1 at a blob, falling off with its size."""
    height, width = size
    deviation = (_NARROW * radius).clamp_min(_NARROWEST)[..., None]  # (B, N, 1)
    across = torch.arange(width, device=xy.device) - xy[..., :1]  # (B, N, w)
    down = torch.arange(height, device=xy.device) - xy[..., 1:]  # (B, N, h)
    rows, columns = (torch.exp(-((away / deviation) ** 2) / 2) for away in (down, across))
    each = (rows * found[..., None])[..., :, None] * columns[..., None, :]  # (B, N, h, w)
    return each.amax(1, keepdim=True)


def focal_loss(score_map: Tensor, target: Tensor, count: Tensor) -> Tensor:
    """Scores and targets (B, 1, h, w) in [0, 1] -> the focal loss of CornerNet (Law and Deng 2018) for a thing.

    Places near a target of 1 are hardly told not to be one; what is right already counts little. count: of the things,
    at least 1; the mean over the processes where several share the batch.
    """
    score = score_map.clamp(_LEAST, 1 - _LEAST)
    is_thing = (target > 0.99).to(score.dtype)
    right = is_thing * (1 - score) ** _POWER * score.log()
    wrong = (1 - is_thing) * (1 - target) ** _NEAR * score**_POWER * (1 - score).log()
    return -(right + wrong).sum() / count
