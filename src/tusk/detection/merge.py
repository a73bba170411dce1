"""Layers of one object -> one layer: a keypoint on a fragment of another's object is no object of its own.

A large object that is near, or shiny, may get a second keypoint, on its highlight or on a corner. Two signs tell such a
fragment: without its layer, the other layers would still cover its pixels, where an object leaves the background; and
most of its edge runs along one neighbour. An object behind another has some of both, a fragment has more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tusk.model.network import Output


@torch.no_grad()
def merge_fragments(decoded: Output, claimed: Output, above: float | None) -> Output:
    """`claimed`, the output whose alphas say whose each pixel is, with the fragments of an object merged into it.

    decoded: the same output with the alphas that it was decoded with. A fragment is as if its keypoint had not been
    found; its share of the pixels goes to its object. See `detection.merge_fragments_above` for `above`.
    """
    if above is None or decoded.layer_alpha is None or claimed.layer_alpha is None:
        return claimed
    found, shares, claims = claimed.found.clone(), decoded.layer_alpha.clone(), claimed.layer_alpha.clone()
    for image in range(len(found)):
        # The labels change with every fragment that is merged, and with them what is a fragment of what.
        while (part := _fragment(shares[image, :, 0], claims[image, :, 0], found[image], above)) is not None:
            for alpha in (shares, claims):
                alpha[image, part.of] += alpha[image, part.keypoint]
                alpha[image, part.keypoint] = 0
            found[image, part.keypoint] = False
    return replace(claimed, found=found, layer_alpha=claims)


@dataclass(frozen=True)
class _Fragment:
    keypoint: int
    of: int  # the keypoint of its object


def _fragment(shares: Tensor, claims: Tensor, found: Tensor, above: float) -> _Fragment | None:
    """The keypoint that is most of all a fragment; None where none is. shares, claims (K, H, W), found (K,)."""
    labels = torch.cat([1 - claims.sum(0, keepdim=True), claims]).argmax(0)  # (H, W): 0 the background, else k + 1
    own = labels == torch.arange(1, len(shares) + 1, device=labels.device)[:, None, None]  # (K, H, W)
    behind = (1 - shares.sum(0)).clamp_min(0)  # (H, W)
    left = (1 - shares).clamp_min(torch.finfo(shares.dtype).eps)  # (K, H, W): of a pixel without the layer
    pixels = own.sum((1, 2))  # (K,)
    covered = 1 - (own * behind / left).sum((1, 2)) / pixels.clamp_min(1)  # (K,): by the other layers
    edges = _edges(labels, len(shares))  # (K, K + 1)
    along, neighbour = (edges[:, 1:] / edges.sum(1, keepdim=True).clamp_min(1)).max(1)  # (K,) each
    signs = torch.where(found & (pixels > 0) & (along > 0), covered + along, -torch.inf)
    most = int(signs.argmax())
    return _Fragment(most, int(neighbour[most])) if float(signs[most]) >= above else None


def _edges(labels: Tensor, layers: int) -> Tensor:
    """labels (H, W) -> (K, K + 1): sides of pixels along which layer k meets the background (0) or layer j (j + 1)."""
    number = layers + 1
    sides = [(labels[:, 1:], labels[:, :-1]), (labels[1:], labels[:-1])]
    pairs = torch.cat([torch.cat([(a * number + b).flatten(), (b * number + a).flatten()]) for a, b in sides])
    met = torch.bincount(pairs, minlength=number**2).view(number, number)
    return met.fill_diagonal_(0)[1:]
