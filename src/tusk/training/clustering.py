"""Clusters of descriptors, from which prototypes start."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from tusk.training.patches import most_similar, patch_vectors

_FRAGMENTS = 8  # small clusters for each type: small enough to hold one kind of object
_LEAST_SHARE = 0.003  # of all descriptors: of fewer, patches say too little
_NEIGHBOURS = 10
_CLEARLY = 2.0  # times as many neighbours as in its own cluster


@dataclass(frozen=True)
class Clusters:
    """Clusters of N descriptors."""

    centres: Tensor  # (M, C) of unit length
    group: Tensor  # (N,) the number of each one's cluster

    def to(self, device: torch.device | str) -> Clusters:
        """The same on another device."""
        return Clusters(self.centres.to(device), self.group.to(device))


def kmeans_clusters(descriptors: Tensor, types: int, seed: int, restarts: int = 10) -> Clusters:
    """(N, C) -> the best of several k-means runs.

    With fewer descriptors than types the rest start as random directions.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    found = min(types, len(descriptors))
    # With several threads the sums, and so the centres, differ from run to run.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters")  # of things that are the same to the bit
        fitted = KMeans(found, n_init=restarts, random_state=seed).fit(descriptors.cpu().numpy())
    centres = torch.as_tensor(fitted.cluster_centers_, dtype=descriptors.dtype, device="cpu")
    if found < types:
        generator = torch.Generator().manual_seed(seed)
        centres = torch.cat([centres, torch.randn(types - found, centres.shape[1], generator=generator, device="cpu")])
    group = torch.as_tensor(fitted.labels_, device=descriptors.device).long()
    return Clusters(F.normalize(centres, dim=-1).to(descriptors.device), group)


def spectral_clusters(
    descriptors: Tensor,
    types: int,
    seed: int,
    *,
    even: bool = True,
    neighbours: int = 10,
    patches: Tensor | None = None,
) -> Clusters:
    """(N, C) -> the clusters that spectral clustering finds, and their mean directions.

    They are cut where the graph of nearest neighbours has few edges, and may have any shape; `even` ones are of about
    the same size. Where there are too few descriptors for that, it is k-means. `patches` (N, 3, 16, 16) correct which
    cluster a part of the graph with hardly any edges to the rest belongs to.
    """
    if len(descriptors) < max(20 * types, 2 * neighbours):
        return kmeans_clusters(descriptors, types, seed)
    from sklearn.cluster import KMeans
    from sklearn.manifold import spectral_embedding
    from sklearn.neighbors import kneighbors_graph
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a graph that is not connected is welcome
        edges = kneighbors_graph(descriptors.cpu().numpy(), neighbours)
        edges = (edges + edges.T) / 2
        # Twice as many directions as clusters: the first ones separate what is far apart, not what is equally large.
        directions = (2 if patches is None else _FRAGMENTS) * types
        embedded = spectral_embedding(edges, n_components=directions, random_state=seed, drop_first=False)
        places = _unit_rows(embedded[:, : 2 * types])  # (N, 2*M)
        if even:
            labels = balanced_clusters(places, types, seed)
        else:
            labels = KMeans(types, n_init=10, random_state=seed).fit_predict(places)
        if patches is not None:
            fragments = KMeans(directions, n_init=3, random_state=seed).fit_predict(_unit_rows(embedded))
            labels = reassign_by_appearance(labels, fragments, edges, patches.cpu())
    group = torch.as_tensor(labels, device=descriptors.device).long()
    sums = descriptors.new_zeros(types, descriptors.shape[1]).index_add(0, group, descriptors)
    return Clusters(F.normalize(sums, dim=-1), group)


def reassign_by_appearance(
    labels: NDArray[np.int64], fragments: NDArray[np.integer], edges: csr_matrix, patches: Tensor
) -> NDArray[np.int64]:
    """labels (N,), with fragments of a cluster that look much more like another cluster moved to that.

    fragments (N,): numbers of small clusters, mostly of one kind of object each; edges (N, N), symmetric; patches
    (N, 3, 16, 16). Where training has drawn some objects so close together that hardly any edges lead out, chance says
    which cluster they are in, and their appearance decides better. One fragment is tried, or two that belong together.
    """
    count = int(fragments.max()) + 1
    member = csr_matrix((np.ones(len(labels)), (np.arange(len(labels)), fragments)), shape=(len(labels), count))
    between = (member.T @ edges @ member).toarray()  # (F, F)
    total = np.maximum(between.sum(1), 1e-12)
    share = between / np.minimum(total[:, None], total)
    np.fill_diagonal(share, 0)
    cluster = np.array([np.bincount(labels[fragments == number]).argmax() for number in range(count)])  # (F,)
    candidates = [{number} for number in range(count)]
    candidates += [{number, int(share[number].argmax())} for number in range(count)]
    corrected, compared = labels.copy(), patch_vectors(patches)
    for candidate in candidates:
        numbers = sorted(candidate)
        inside = np.isin(fragments, numbers)
        own = cluster[numbers[0]]
        small = inside.sum() < _LEAST_SHARE * len(labels)
        # Most of a cluster is not moved: a rare kind of object has few others to be similar to.
        if cluster[numbers[-1]] != own or small or 2 * inside.sum() > (labels == own).sum():
            continue
        outside = np.flatnonzero(~inside)
        similar = labels[outside[most_similar(compared[inside], compared[outside], _NEIGHBOURS).numpy()]]  # (n, 10)
        found = np.bincount(similar.ravel(), minlength=own + 1)
        if found.max() >= _CLEARLY * found[own] and found.argmax() != own:
            corrected[inside] = found.argmax()
    return corrected


def _unit_rows(places: NDArray[np.floating]) -> NDArray[np.floating]:
    unit: NDArray[np.floating] = places / (np.linalg.norm(places, axis=1, keepdims=True) + 1e-12)
    return unit


def balanced_clusters(places: NDArray[np.floating], groups: int, seed: int, restarts: int = 6) -> NDArray[np.int64]:
    """(N, D) -> (N,) cluster numbers: k-means with clusters of about the same size, the best of several runs.

    Each round is a Sinkhorn assignment, which gives every cluster as much of the points as any other, and moves the
    centres to the means.
    """
    from sklearn.cluster import kmeans_plusplus

    random = np.random.RandomState(seed)
    best_cost, best = np.inf, np.zeros(len(places), np.int64)
    squares = (places**2).sum(1)[:, None]
    for _ in range(restarts):
        centres, _ = kmeans_plusplus(places, groups, random_state=random)
        for _ in range(30):
            distance = np.maximum(squares - 2 * places @ centres.T + (centres**2).sum(1), 0)  # (N, M)
            # Soft by a fiftieth of the mean distance: sharp enough to be k-means, soft enough for Sinkhorn's scaling.
            share = np.exp(-(distance - distance.min(1, keepdims=True)) / (0.02 * distance.mean() + 1e-12))
            column = np.ones(groups)
            for _ in range(20):
                row = 1 / (share @ column)
                column = len(places) / groups / np.maximum(share.T @ row, 1e-300)
            share = row[:, None] * share * column
            share /= share.sum(1, keepdims=True)
            centres = share.T @ places / share.sum(0)[:, None]
        cost = float((share * distance).sum())
        if cost < best_cost:
            best_cost, best = cost, share.argmax(1)
    return best


def restart_dead_prototypes(prototypes: Tensor, descriptors: Tensor, seed: int, least: float) -> Tensor:
    """Prototypes (M, C) of unit length, where those that hardly any descriptor (N, C) is nearest to are put to use.

    A type is dead where it has less than `least` of an even share. It takes over half of the most scattered type,
    which most likely holds two kinds of objects: k-means with two centres separates them.
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
        prototypes[[crowded, dead]] = kmeans_clusters(descriptors[nearest == crowded], 2, seed).centres
    return prototypes
