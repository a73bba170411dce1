"""Types that are the same in both views, confident, and all in use, by one number."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def joint_types(first: Tensor, second: Tensor, over_ranks: Callable[[Tensor], Tensor] = lambda value: value) -> Tensor:
    """How often types meet: (M, M), symmetric, sum 1, from the types of the same N keypoints in two views.

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
    weighs the first by itself. A batch meets most pairs of types a few times at best, and the logarithm of so rough a
    count is a poor guide: `usual`, the joint distribution over the last batches, may stand inside the logarithms. The
    gradient is that of the mutual information at `usual`, estimated by this batch.
    """
    running_mean = (joint if running_mean is None else running_mean).detach()
    marginal, running_marginal = joint.sum(0), running_mean.sum(0)  # (M,), the row's and the column's alike
    joint_entropy = -(joint * running_mean.log()).sum()
    marginal_entropy = -(marginal * running_marginal.log()).sum()
    return joint_entropy - 2 * evenness * marginal_entropy
