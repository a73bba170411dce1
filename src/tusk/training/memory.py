"""The latest descriptors, kept for k-means and for batches that hold too few of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


class DescriptorMemory:
    """The last `size` descriptors, newest last."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._parts: list[Tensor] = []

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def add(self, descriptors: Tensor) -> None:
        """descriptors (N, C), detached."""
        self._parts.append(descriptors)
        while len(self) - len(self._parts[0]) >= self.size and len(self._parts) > 1:
            self._parts.pop(0)

    def latest(self, count: int | None = None) -> Tensor:
        """(N, C): at most `count` of them."""
        everything = torch.cat(self._parts)
        return everything if count is None else everything[-count:]


def kmeans_centres(descriptors: Tensor, types: int, seed: int, restarts: int = 10) -> Tensor:
    """(N, C) -> (M, C) of unit length: the best of several k-means runs.

    With fewer descriptors than types the rest start as random directions.
    """
    from sklearn.cluster import KMeans

    found = min(types, len(descriptors))
    fitted = KMeans(found, n_init=restarts, random_state=seed).fit(descriptors.cpu().numpy())
    centres = torch.as_tensor(fitted.cluster_centers_, dtype=descriptors.dtype)
    if found < types:
        generator = torch.Generator().manual_seed(seed)
        centres = torch.cat([centres, torch.randn(types - found, centres.shape[1], generator=generator)])
    return F.normalize(centres, dim=-1).to(descriptors.device)
