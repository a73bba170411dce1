"""The predictions of a page as people named the types: merged, split, hidden."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.naming import Naming, named_types
from tusk.naming.assign import assign
from tusk.report.predictions import Predictions


@dataclass(frozen=True)
class PageTypes:
    """The types on a page, by number."""

    count: int  # one more than the largest number
    titles: tuple[str, ...]  # the names, or "type 3"
    shown: tuple[int, ...]  # numbers that are in use
    centres: Tensor  # (count, C)

    def tag(self, number: int) -> str | None:
        """The name of a type that has one."""
        return None if self.titles[number] == f"type {number}" else self.titles[number]


def plain_types(count: int, centres: Tensor) -> PageTypes:
    """Those of the model itself."""
    return PageTypes(count, tuple(f"type {number}" for number in range(count)), tuple(range(count)), centres)


def name_predictions(predictions: Predictions, naming: Naming, centres: Tensor) -> tuple[Predictions, PageTypes]:
    """centres (T, C) of the model's own types. A named type's centre is the mean of what was found of it."""
    state, shape = named_types(naming), predictions.label.shape
    vectors = predictions.descriptors.flatten(0, 1)  # (N*K, C)
    types = assign(naming, predictions.label.flatten().numpy(), vectors.double().numpy())
    label = torch.from_numpy(types.reshape(shape))
    found = predictions.found & torch.from_numpy(np.isin(types, state.visible).reshape(shape))
    mask = predictions.mask
    if mask is not None:
        shown = torch.cat([found.new_ones(len(mask), 1), found[: len(mask)]], 1)  # (S, 1 + K): the background first
        mask = mask * shown.gather(1, mask.flatten(1)).view_as(mask)
    means = torch.zeros(state.count, centres.shape[1])
    means[: len(centres)] = 1e-3 * centres  # of a type that was not found
    kept = found.flatten()
    means.index_add_(0, label.flatten()[kept], vectors[kept])
    named = PageTypes(state.count, state.titles, state.visible, F.normalize(means, dim=-1))
    return replace(predictions, label=label, found=found, mask=mask), named
