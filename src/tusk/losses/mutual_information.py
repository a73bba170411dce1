"""Types that are the same in both views, confident, and all in use, by one number: mutual information."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field
from torch import Tensor

from tusk.config import Config, LossSettings
from tusk.config.base import Fraction, NotNegative
from tusk.losses.registry import Loss, register
from tusk.losses.two_views import TwoViews

if TYPE_CHECKING:
    from tusk.losses.context import StepContext


class MutualInformationConfig(LossSettings):
    """Types should be the same in both views, confident, and all in use."""

    memory: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of earlier batches in the joint distribution of types: a single batch gives only a rough estimate."""
    neighbours: Fraction = 0.0
    """Share of pairs of a keypoint and its nearest neighbour in other images (of `training.memory`), instead of the
    same keypoint in two views: similar keypoints should be of one type, even where no warp turns one into the other."""
    evenness: NotNegative = 1.0
    """Weight of the even use of types; lower it where types are of very uneven frequency."""

    def splits_over_images(self) -> bool:
        return False


@register("mutual_information", MutualInformationConfig)
class MutualInformation(Loss[MutualInformationConfig]):
    """Over the keypoints of all processes that both views show."""

    joint: Tensor  # (M, M): running mean of the joint distribution of types; all zeros before the first batch

    def __init__(self, settings: MutualInformationConfig, config: Config) -> None:
        super().__init__(settings, config)
        self.register_buffer("joint", torch.zeros(config.model.types, config.model.types))

    def value(self, step: StepContext) -> Tensor:
        joint = self.joint_of(step.two_views, step)
        return mutual_information_loss(joint, self.settings.evenness, self._running_mean(joint))

    def joint_of(self, views: TwoViews, step: StepContext) -> Tensor:
        """Joint distribution of types (M, M): of keypoints in two views, and of keypoints and their neighbours."""
        joint = joint_types(*views.types(step.network), step.ranks.mean)
        if self.settings.neighbours == 0 or not len(step.memory):
            return joint
        nearest = TwoViews(
            torch.cat([views.first, views.second]),
            torch.cat([step.nearest_in_memory(views.first), step.nearest_in_memory(views.second)]),
            views.usable.repeat(2),
        )
        found = joint_types(*nearest.types(step.network), step.ranks.mean)
        return joint.lerp(found, self.settings.neighbours)

    @torch.no_grad()
    def _running_mean(self, joint: Tensor) -> Tensor:
        """The joint distribution of types over the last batches, this one included."""
        memory = self.settings.memory
        running_mean = self.joint.mul(memory).add(joint, alpha=1 - memory) if bool(self.joint.any()) else joint
        self.joint.copy_(running_mean)
        return running_mean

    def state(self) -> dict[str, Tensor]:
        return {"joint": self.joint}

    def prototypes_replaced(self) -> None:
        self.joint.zero_()


def joint_types(first: Tensor, second: Tensor, over_ranks: Callable[[Tensor], Tensor] = lambda value: value) -> Tensor:
    """Joint distribution of types, (M, M), symmetric, sum 1, from the types of the same N keypoints in two views.

    first, second (N, M): probabilities of the types; N may be 0 on some processes. `over_ranks` turns sums of this
    process into means over all processes.
    """
    count = over_ranks(first.new_tensor(float(len(first))))
    joint = over_ranks(first.T @ second) / count.clamp_min(1e-8)  # (M, M)
    joint = (joint + joint.T) / 2
    joint = joint.clamp_min(1e-8)
    return joint / joint.sum()


def mutual_information_loss(joint: Tensor, evenness: float = 1.0, running_mean: Tensor | None = None) -> Tensor:
    """Minus the mutual information of a joint distribution (M, M): H(joint) - 2 * evenness * H(marginal).

    The marginal's entropy asks for all types to be used, the joint one for consistent and confident types; `evenness`
    weighs the first by itself. A batch holds most pairs of types a few times at best, and the logarithm of so rough an
    estimate is a poor guide: `running_mean`, the joint distribution over the last batches, may take its place inside
    the logarithms. The gradient is that of the mutual information at the running mean, estimated by this batch.
    """
    running_mean = (joint if running_mean is None else running_mean).detach()
    marginal, running_marginal = joint.sum(0), running_mean.sum(0)  # (M,), the row's and the column's alike
    joint_entropy = -(joint * running_mean.log()).sum()
    marginal_entropy = -(marginal * running_marginal.log()).sum()
    return joint_entropy - 2 * evenness * marginal_entropy
