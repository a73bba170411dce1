"""The latest descriptors, kept for clustering and for batches that hold too few of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_NEIGHBOURS = 10
_LEAST_SHARE = 0.5  # of an even share: no neighbour counts for more than two


class DescriptorMemory:
    """The last `size` descriptors, newest last; at least those that were added last.

    Once it has the clusters of its descriptors, each new one joins the cluster of most of its nearest neighbours.
    Where clusters are expected to be `even`, members of a small one count for more: otherwise, of two clusters that
    touch, the larger one wins new descriptors from the smaller until that is gone. Patches are kept beside
    descriptors, if given.
    """

    def __init__(self, size: int, *, even: bool = False) -> None:
        self.size = size
        self.even = even
        self._kept: Tensor | None = None
        self.groups: Tensor | None = None  # (N,) the number of each one's cluster, where known
        self.patches: Tensor | None = None  # uint8 (N, 3, 16, 16)

    def __len__(self) -> int:
        return 0 if self._kept is None else len(self._kept)

    def add(self, descriptors: Tensor, patches: Tensor | None = None) -> None:
        """descriptors (N, C), detached; patches (N, 3, 16, 16), always or never."""
        size = max(self.size, len(descriptors))
        if self.groups is not None:
            joined = self.pseudo_labels(descriptors, int(self.groups.max()) + 1).argmax(-1)
            self.groups = torch.cat([self.groups, joined])[-size:]
        everything = descriptors if self._kept is None else torch.cat([self._kept, descriptors])
        self._kept = everything[-size:]
        if patches is not None:
            self.patches = (patches if self.patches is None else torch.cat([self.patches, patches]))[-size:]

    def pseudo_labels(self, descriptors: Tensor, groups: int) -> Tensor:
        """(N, C) -> (N, groups): how the nearest descriptors in memory are shared out among the clusters."""
        assert self._kept is not None and self.groups is not None
        count = min(_NEIGHBOURS, len(self._kept))
        nearest = (descriptors @ self._kept.T).topk(count, dim=-1).indices  # (N, neighbours)
        labels = F.one_hot(self.groups[nearest], groups).to(descriptors.dtype).sum(1)  # (N, groups)
        if self.even:
            share = torch.bincount(self.groups, minlength=groups) * groups / len(self.groups)  # 1 where even
            labels = labels / share.clamp_min(_LEAST_SHARE).to(labels.dtype)
        return labels / labels.sum(-1, keepdim=True)

    def means(self, before: Tensor) -> Tensor:
        """(M, C): the mean direction of each cluster; what it was before, (M, C), where the cluster is empty."""
        assert self._kept is not None and self.groups is not None
        sums = torch.zeros_like(before).index_add(0, self.groups, self._kept.to(before.dtype))
        return torch.where(sums.norm(dim=-1, keepdim=True) > 0, F.normalize(sums, dim=-1), before)

    def replace(self, descriptors: Tensor | None, groups: Tensor | None = None, patches: Tensor | None = None) -> None:
        """Forget everything but these, (N, C), their clusters (N,) and their patches (N, 3, 16, 16)."""
        self._kept, self.groups, self.patches = descriptors, groups, patches

    def latest(self, count: int | None = None) -> Tensor:
        """(N, C): all, or at most `count` of them."""
        if self._kept is None:
            raise ValueError("nothing has been added yet")
        return self._kept if count is None else self._kept[-count:]
