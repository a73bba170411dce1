"""Types that are the same in both views, confident, and all in use, by one number."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def mutual_information_loss(
    first: Tensor,
    second: Tensor,
    evenness: float = 1.0,
    over_ranks: Callable[[Tensor], Tensor] = lambda value: value,
) -> Tensor:
    """Minus the mutual information between the types of the same keypoint in two views.

    first, second (N, M): probabilities of the types; N may be 0 on some processes. The joint distribution J is the
    mean of their outer products, made symmetric. I(J) = H(row) + H(column) - H(J): the marginal entropies ask for all
    types to be used, the joint one for consistent and confident types. `evenness` weighs the marginals by themselves.
    `over_ranks` turns sums of this process into means over all processes.
    """
    count = over_ranks(first.new_tensor(float(len(first))))
    joint = over_ranks(first.T @ second) / count.clamp_min(1e-8)  # (M, M)
    joint = (joint + joint.T) / 2
    joint = joint.clamp_min(1e-8)
    joint = joint / joint.sum()
    marginal = joint.sum(0)  # (M,), the row's and the column's alike
    joint_entropy = -(joint * joint.log()).sum()
    marginal_entropy = -(marginal * marginal.log()).sum()
    return joint_entropy - 2 * evenness * marginal_entropy
