"""The latest descriptors, kept for k-means and for batches that hold too few of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_VOTERS = 10
_LEAST_SHARE = 0.5  # of an even share: no voice counts for more than two


class DescriptorMemory:
    """The last `size` descriptors, newest last; at least those that were added last.

    Once it is told the groups of what it holds, it also knows those of what is added: the group of most of its nearest.
    Where groups are expected to be `even`, a small group's voices count for more. Otherwise, of two groups that touch,
    the larger one wins newcomers from the smaller until that is gone. Looks are kept beside descriptors, if given.
    """

    def __init__(self, size: int, *, even: bool = False) -> None:
        self.size = size
        self.even = even
        self._kept: Tensor | None = None
        self.groups: Tensor | None = None  # (N,) numbers from 0, where known
        self.patches: Tensor | None = None  # uint8 (N, 3, 16, 16)

    def __len__(self) -> int:
        return 0 if self._kept is None else len(self._kept)

    def add(self, descriptors: Tensor, patches: Tensor | None = None) -> None:
        """descriptors (N, C), detached; looks (N, 3, 16, 16), always or never."""
        size = max(self.size, len(descriptors))
        if self.groups is not None:
            joined = self.pseudo_labels(descriptors, int(self.groups.max()) + 1).argmax(-1)
            self.groups = torch.cat([self.groups, joined])[-size:]
        everything = descriptors if self._kept is None else torch.cat([self._kept, descriptors])
        self._kept = everything[-size:]
        if patches is not None:
            self.patches = (patches if self.patches is None else torch.cat([self.patches, patches]))[-size:]

    def pseudo_labels(self, descriptors: Tensor, groups: int) -> Tensor:
        """(N, C) -> (N, groups): how the nearest descriptors in memory are shared out among the groups."""
        assert self._kept is not None and self.groups is not None
        nearest = (descriptors @ self._kept.T).topk(min(_VOTERS, len(self._kept)), dim=-1).indices  # (N, voters)
        pseudo_labels = F.one_hot(self.groups[nearest], groups).to(descriptors.dtype).sum(1)
        if self.even:
            share = torch.bincount(self.groups, minlength=groups) * groups / len(self.groups)  # 1 where even
            pseudo_labels = pseudo_labels / share.clamp_min(_LEAST_SHARE).to(pseudo_labels.dtype)
        return pseudo_labels / pseudo_labels.sum(-1, keepdim=True)

    def means(self, before: Tensor) -> Tensor:
        """(M, C): the mean direction of each group; what it was before, (M, C), where nothing is left of the group."""
        assert self._kept is not None and self.groups is not None
        sums = torch.zeros_like(before).index_add(0, self.groups, self._kept.to(before.dtype))
        return torch.where(sums.norm(dim=-1, keepdim=True) > 0, F.normalize(sums, dim=-1), before)

    def replace(self, descriptors: Tensor | None, groups: Tensor | None = None, patches: Tensor | None = None) -> None:
        """Forget everything but these, (N, C), their groups (N,) and their looks (N, 3, 16, 16)."""
        self._kept, self.groups, self.patches = descriptors, groups, patches

    def latest(self, count: int | None = None) -> Tensor:
        """(N, C): all, or at most `count` of them."""
        if self._kept is None:
            raise ValueError("nothing has been added yet")
        return self._kept if count is None else self._kept[-count:]
