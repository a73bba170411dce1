"""Types by themselves: more prototypes than kinds of things, merged by what holds across views and clusterings.

A clustering always gives as many clusters as were asked for. Two of them that are halves of one kind are put together
as soon as the clustering starts elsewhere, has another number of clusters, or sees the things in another view; two
kinds of things are not. So the prototypes of a training are merged where other clusterings put their things together
(evidence accumulation, Fred and Jain 2005), and what is rare but different keeps a type of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from torch import Tensor

from tusk.config import Config
from tusk.detection.pipeline import detect_batch
from tusk.detection.settings import settings_from
from tusk.geometry.warp import sample_warp
from tusk.model.network import Network, eval_mode

FloatArray = npt.NDArray[np.float64]

_CLUSTERINGS = 24
_FEWEST, _MOST = 0.5, 1.5  # clusters in each of them, in prototypes
_TOGETHER = 0.3  # share of the clusterings that put two prototypes' things together, from which on they are merged
_LEAST = 20  # things: of fewer, nothing can be said
_PART = 16  # images at a time


@dataclass(frozen=True)
class MergedTypes:
    """Which type each prototype is of, and the tree of merges, for whoever wants to cut it elsewhere."""

    members: tuple[int, ...]  # (M,) types in the order of their size, the largest first; unused prototypes too
    tree: tuple[tuple[int, int, float], ...]  # prototypes or earlier merges (M, M + 1 ...), and how often together


def merge_types(network: Network, config: Config, images: Tensor, seed: int) -> MergedTypes | None:
    """images (N, 3, H, W), uint8, of the training; None where there are too few things to say anything."""
    first, second, sizes = _two_views(network, config, images, seed)
    prototypes = network.prototypes.unit().detach().cpu()
    nearest = (first @ prototypes.T).argmax(1).numpy()  # (n,)
    if len(first) < _LEAST or len(prototypes) < 2:
        return None
    together = co_association([first.numpy(), second.numpy()], nearest, len(prototypes), seed)
    used = np.bincount(nearest, minlength=len(prototypes)) > 0
    apart = np.where(used[:, None] & used, 1 - together, 1.0)
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), "average")
    group = fcluster(tree, 1 - _TOGETHER, "distance") - 1  # (M,)
    return MergedTypes(_ordered(group, nearest, sizes), tuple((int(a), int(b), float(1 - d)) for a, b, d, _ in tree))


def co_association(views: list[FloatArray], nearest: npt.NDArray[np.int64], count: int, seed: int) -> FloatArray:
    """views: descriptors (n, C) of the same things; nearest (n,): the prototype of each -> (count, count): how often a
    thing of one prototype and a thing of another are put together, next to how often two of the same one are."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    random = np.random.RandomState(seed)
    sums = np.zeros((count, count))
    for number in range(_CLUSTERINGS):
        descriptors = views[number % len(views)]
        clusters = min(len(descriptors), max(2, round(count * random.uniform(_FEWEST, _MOST))))
        with threadpool_limits(1):
            labels = KMeans(clusters, n_init=1, random_state=random.randint(1 << 30)).fit_predict(descriptors)
        shares = np.zeros((count, clusters))
        np.add.at(shares, (nearest, labels), 1)
        shares /= np.maximum(shares.sum(1, keepdims=True), 1)
        sums += shares @ shares.T
    own = np.sqrt(np.maximum(np.diag(sums), 1e-12))
    return np.asarray(np.clip(sums / own / own[:, None], 0, 1))


def _ordered(group: npt.NDArray[np.integer], nearest: npt.NDArray[np.int64], sizes: FloatArray) -> tuple[int, ...]:
    """Groups (M,) renumbered: used ones first, larger things before smaller ones. Unused prototypes join the first."""
    of_thing = group[nearest]
    used = sorted(np.unique(of_thing), key=lambda one: -float(np.median(sizes[of_thing == one])))
    number = {one: place for place, one in enumerate(used)}
    return tuple(number.get(one, 0) for one in group)


@torch.no_grad()
def _two_views(network: Network, config: Config, images: Tensor, seed: int) -> tuple[Tensor, Tensor, FloatArray]:
    """Descriptors (n, C) of the things in the images, of the same ones in warped views, and their sizes (n,)."""
    generator = torch.Generator().manual_seed(seed)
    device = network.device
    settings, first, second, sizes = settings_from(config), [], [], []
    for part in images.split(_PART):
        shown = part.to(device, torch.float32) / 255
        found = detect_batch(network, shown, settings, skip_unused_gain=True)
        warp = sample_warp(config.training.second_warp, len(shown), generator, str(device))
        height, width = shown.shape[-2:]
        with eval_mode(network):
            encoding = network.encode(warp.images(shown))  # what the second view shows by itself
        other = encoding.descriptors  # (B, K, C)
        there = warp.source_points(network.to_image(encoding.keypoints.xy), height, width)  # (B, K, 2) in the first
        near = torch.cdist(found.xy, there)  # (B, k, K)
        distance, match = near.min(-1)
        reach = found.size / 4 if found.size is not None else torch.full_like(distance, config.model.window / 4)
        both = found.kept & (distance < reach)
        matched = other.gather(1, match[..., None].expand(-1, -1, other.shape[-1]))
        first.append(found.descriptors[both].cpu())
        second.append(matched[both].cpu())
        sizes.append((reach[both] * 4).cpu())
    return torch.cat(first), torch.cat(second), torch.cat(sizes).double().numpy()
