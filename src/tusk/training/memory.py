"""The latest descriptors, kept for k-means and for batches that hold too few of them."""

from __future__ import annotations

import warnings

import numpy as np
import torch
import torch.nn.functional as F
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


def revive(prototypes: Tensor, descriptors: Tensor, seed: int, least: float = 0.1) -> Tensor:
    """Prototypes (M, C) of unit length, where those that hardly any descriptor (N, C) is nearest to are put to use.

    A type is dead where it has less than `least` of an even share. It takes over half of the most scattered type,
    which is where two kinds of things most likely hide under one name: k-means with two centres tells the halves.
    """
    prototypes = prototypes.clone()
    for dead in range(len(prototypes)):
        cosine, nearest = (descriptors @ prototypes.T).max(-1)  # (N,) each
        count = torch.bincount(nearest, minlength=len(prototypes))
        if count[dead] >= least * len(descriptors) / len(prototypes):
            continue
        scatter = torch.zeros(len(prototypes), dtype=cosine.dtype, device=cosine.device)
        scatter.index_add_(0, nearest, 1 - cosine)
        crowded = int(scatter.argmax())
        if crowded == dead or count[crowded] < 2:
            continue
        prototypes[[crowded, dead]] = kmeans_centres(descriptors[nearest == crowded], 2, seed)
    return prototypes


def spectral_centres(descriptors: Tensor, types: int, seed: int, neighbours: int = 10) -> Tensor:
    """(N, C) -> (M, C) of unit length: the mean directions of the groups that spectral clustering finds.

    Each descriptor is tied to its nearest ones; groups are what few ties connect. Where there are too few descriptors
    for that, k-means stands in.
    """
    if len(descriptors) < max(20 * types, 2 * neighbours):
        return kmeans_centres(descriptors, types, seed)
    from sklearn.cluster import KMeans
    from sklearn.manifold import spectral_embedding
    from sklearn.neighbors import kneighbors_graph
    from threadpoolctl import threadpool_limits

    values = descriptors.cpu().numpy()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that groups are quite apart is welcome
        ties = kneighbors_graph(values, neighbours)
        ties = (ties + ties.T) / 2
        places = spectral_embedding(ties, n_components=types, random_state=seed, drop_first=False)  # (N, M)
        places /= np.linalg.norm(places, axis=1, keepdims=True) + 1e-12
        labels = KMeans(types, n_init=10, random_state=seed).fit_predict(places)
    group = torch.as_tensor(labels, device=descriptors.device).long()
    sums = descriptors.new_zeros(types, descriptors.shape[1]).index_add(0, group, descriptors)
    return F.normalize(sums, dim=-1)


def kmeans_centres(descriptors: Tensor, types: int, seed: int, restarts: int = 10) -> Tensor:
    """(N, C) -> (M, C) of unit length: the best of several k-means runs.

    With fewer descriptors than types the rest start as random directions.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    found = min(types, len(descriptors))
    with threadpool_limits(1):  # with several threads the sums, and so the centres, differ from run to run
        fitted = KMeans(found, n_init=restarts, random_state=seed).fit(descriptors.cpu().numpy())
    centres = torch.as_tensor(fitted.cluster_centers_, dtype=descriptors.dtype)
    if found < types:
        generator = torch.Generator().manual_seed(seed)
        centres = torch.cat([centres, torch.randn(types - found, centres.shape[1], generator=generator)])
    return F.normalize(centres, dim=-1).to(descriptors.device)
