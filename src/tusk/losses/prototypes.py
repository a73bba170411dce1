"""What the prototypes follow (paper, section 3.3): a loss of their own, beside the sum that the network lowers.

>>> import torch, torch.nn.functional as F
>>> descriptors, prototypes = F.normalize(torch.randn(18, 8), dim=-1), F.normalize(torch.randn(5, 8), dim=-1)
>>> generator = torch.Generator().manual_seed(0)
>>> float(sliced_wasserstein(descriptors, prototypes, generator=generator)) > 0
True
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config import Part
from tusk.config.base import NotNegative
from tusk.config.losses import register_settings
from tusk.model.prototypes import distances

Rounding = Literal["largest-remainder", "authors"]


class PrototypesConfig(Part):
    """What the prototypes themselves follow."""

    kind: Literal["sliced-wasserstein", "k-means"] = "sliced-wasserstein"
    """The paper's loss, or plain k-means, an alternative of its ablation."""
    rounding: Rounding = "largest-remainder"
    """How mixture weights become whole numbers of samples."""
    extra_mixing: NotNegative = 0.0
    """Added to every prototype's share; the authors add 0.01."""


register_settings("prototypes", PrototypesConfig)


def prototype_loss(
    settings: PrototypesConfig, descriptors: Tensor, prototypes: Tensor, generator: torch.Generator
) -> Tensor:
    """Of prototypes (M, C) of unit length, for descriptors (N, C) that do not change."""
    if settings.kind == "k-means":
        return nearest_prototype_loss(descriptors, prototypes)
    mixing, rounding = settings.extra_mixing, settings.rounding
    return sliced_wasserstein(descriptors, prototypes, generator=generator, rounding=rounding, extra_mixing=mixing)


def mixture_weights(descriptors: Tensor, prototypes: Tensor, extra_mixing: float = 0.0) -> Tensor:
    """The weights pi_m of the prototypes' mixture (appendix, prototype learning), from (N, C) and (M, C) -> (M,).

    alpha_m = (share of descriptors nearest to m) + Var(sigma), sigma_m the mean squared deviation of those from m
    (1 where there is none), Var over the prototypes: where they are unequally tight, unused ones get explored.
    """
    types = len(prototypes)
    square, nearest = distances(descriptors, prototypes, "mean-square").min(-1)  # (N,) each
    count = torch.bincount(nearest, minlength=types)  # (M,)
    total = torch.zeros(types, device=square.device, dtype=square.dtype).index_add(0, nearest, square)
    std = torch.where(count > 0, total / count.clamp_min(1), 1.0)  # (M,)
    alpha = count.to(square.dtype) / len(descriptors) + std.var(unbiased=False) + extra_mixing
    return alpha / alpha.sum()


def sample_counts(weights: Tensor, samples: int, rounding: Rounding = "largest-remainder") -> Tensor:
    """Whole numbers (M,) that add up to `samples`, as near to weights x samples as can be.

    `authors` rounds all down and gives everything that is left to the last prototype.
    """
    wanted = weights * samples
    count = wanted.floor()
    left = int(samples - count.sum())
    if rounding == "authors":
        count[-1] += left
    elif left > 0:
        # A stable order, so that ties fall alike on every device.
        order = (wanted - count).argsort(descending=True, stable=True)
        count[order[:left]] += 1
    return count.long()


def sliced_wasserstein(
    descriptors: Tensor,
    prototypes: Tensor,
    *,
    generator: torch.Generator | None = None,
    projections: int | Tensor = 100,
    noise: float | Tensor = 0.02,
    weights: Tensor | None = None,
    rounding: Rounding = "largest-remainder",
    extra_mixing: float = 0.0,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor:
    """Equation 2: the distance between descriptors (N, C) and N samples from the mixture around prototypes (M, C).

    Both are projected on random unit directions, sorted, and compared. `projections` and `noise` may be given as
    tensors, (C, P) and (N, C), instead of being drawn. `sum` over directions is the authors' form.
    """
    count, channels = descriptors.shape
    if weights is None:
        weights = mixture_weights(descriptors.detach(), prototypes.detach(), extra_mixing)
    if isinstance(projections, int):
        drawn = _draw(channels, projections, like=descriptors, generator=generator)
        projections = F.normalize(drawn, dim=0)  # (C, P)
    if not isinstance(noise, Tensor):
        noise = noise * _draw(count, channels, like=descriptors, generator=generator)
    component = torch.repeat_interleave(sample_counts(weights, count, rounding))  # (N,)
    samples = F.normalize(prototypes[component] + noise, dim=-1)  # (N, C)
    # (P, N): sorting along the last, contiguous dimension is several times faster.
    ours = (projections.T @ samples.T).sort(-1).values
    theirs = (projections.T @ descriptors.T).sort(-1).values
    each = (ours - theirs).square().mean(-1)  # (P,)
    return each.mean() if reduction == "mean" else each.sum()


def nearest_prototype_loss(descriptors: Tensor, prototypes: Tensor) -> Tensor:
    """Plain k-means for the prototypes (the paper's ablation): mean squared distance to the nearest, (N, C), (M, C)."""
    return distances(descriptors, prototypes, "mean-square").amin(-1).mean()


def _draw(rows: int, columns: int, *, like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Normal numbers, drawn on the generator's device so that a seed means the same on every device."""
    device = like.device if generator is None else generator.device
    return torch.randn(rows, columns, generator=generator, device=device, dtype=like.dtype).to(like.device)
