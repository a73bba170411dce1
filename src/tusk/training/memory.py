"""The latest descriptors, kept for k-means and for batches that hold too few of them."""

from __future__ import annotations

import torch
from torch import Tensor


class DescriptorMemory:
    """The last `size` descriptors, newest last; at least those that were added last."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self._kept is None else len(self._kept)

    def add(self, descriptors: Tensor) -> None:
        """descriptors (N, C), detached."""
        everything = descriptors if self._kept is None else torch.cat([self._kept, descriptors])
        self._kept = everything[-max(self.size, len(descriptors)) :]

    def replace(self, descriptors: Tensor | None) -> None:
        """Forget everything but these, (N, C)."""
        self._kept = descriptors

    def latest(self, count: int | None = None) -> Tensor:
        """(N, C): all, or at most `count` of them."""
        if self._kept is None:
            raise ValueError("nothing has been added yet")
        return self._kept if count is None else self._kept[-count:]
