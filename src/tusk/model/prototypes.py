"""Descriptors -> types: the nearest of M learnt prototypes, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Distance = Literal["norm", "mean-square"]


def distances(descriptors: Tensor, prototypes: Tensor, kind: Distance) -> Tensor:
    """descriptors (..., C), prototypes (M, C) -> (..., M).

    `norm` is the paper's Euclidean distance; `mean-square` the authors': the mean over channels of the squared
    difference. Both from one matrix product: no (..., M, C) tensor of differences is made.
    """
    square = (
        descriptors.square().sum(-1, keepdim=True) + prototypes.square().sum(-1) - 2 * descriptors @ prototypes.T
    ).clamp_min(0)
    if kind == "mean-square":
        return square / descriptors.shape[-1]
    return (square + 1e-12).sqrt()  # the root has no slope at 0


class Prototypes(nn.Module):
    """M prototypes, stored un-normalised and brought to unit length at use.

    Stored so, a step of the optimiser on a long prototype turns it less: its length acts as a memory of how settled
    its direction is.
    """

    def __init__(
        self, types: int, channels: int, distance: Distance, scale: float, members: Sequence[int] | None = None
    ) -> None:
        """members: the type of each prototype, where several make up one; by default each is a type of its own."""
        super().__init__()
        self.types = types
        self.weight = nn.Parameter(torch.randn(types if members is None else len(members), channels))
        # No buffer: one that is not stored would be left undefined where a model is loaded.
        self.members = None if members is None else tuple(members)
        self.distance: Distance = distance
        self.scale = scale

    def unit(self) -> Tensor:
        """(M, C), each of length 1."""
        return F.normalize(self.weight, dim=-1)

    def log_probability(self, descriptors: Tensor, scale: float | None = None) -> Tensor:
        """descriptors (..., C) -> (..., M): log of the softmax of -scale x distance."""
        distance = distances(descriptors, self.unit(), self.distance)
        return F.log_softmax(-(self.scale if scale is None else scale) * distance, dim=-1)

    def forward(self, descriptors: Tensor) -> Tensor:
        """descriptors (..., C) -> probability of each type (..., T)."""
        return self.of_types(self.log_probability(descriptors).exp())

    def of_types(self, probability: Tensor) -> Tensor:
        """Probabilities of the prototypes (..., M) -> of the types (..., T), which several of them may make up."""
        if self.members is None:
            return probability
        sums = probability.new_zeros(*probability.shape[:-1], self.types)
        return sums.index_add(-1, torch.tensor(self.members, device=sums.device), probability)

    def centres(self) -> Tensor:
        """(T, C): the mean direction of each type's prototypes."""
        unit = self.unit()
        if self.members is None:
            return unit
        members = torch.tensor(self.members, device=unit.device)
        return F.normalize(unit.new_zeros(self.types, unit.shape[1]).index_add(0, members, unit), dim=-1)
