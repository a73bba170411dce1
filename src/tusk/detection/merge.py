"""Layers of one thing -> one layer: a keypoint on a part of another's thing is no thing of its own.

A large thing that is near, or shiny, may get a second keypoint, on its highlight or on a corner. Two signs tell it from
a thing: without its layer, the other layers would still cover its pixels, where a thing leaves the bare background; and
most of its edge runs along one neighbour. A thing that stands behind another has some of both, a part has more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tusk.model.layers import claim_pixels
from tusk.model.network import Network, Output


@torch.no_grad()
def merge_fragments(network: Network, images: Tensor, output: Output) -> Output:
    """Whose each pixel of the images (B, 3, H, W) is, with the parts of a thing joined, where the settings ask for it.

    A part is as if its keypoint had not been found; its share of the pixels is its thing's.
    """
    claimed = claim_pixels(network, images, output)
    least = network.config.merge_fragments_above
    if least is None or output.layer_alpha is None or claimed.layer_alpha is None:
        return claimed
    found, shares, claims = output.found.clone(), output.layer_alpha.clone(), claimed.layer_alpha.clone()
    for image in range(len(images)):
        # The labels change with every part that is joined, and with them what is a part of what.
        while (part := _a_part(shares[image, :, 0], claims[image, :, 0], found[image], least)) is not None:
            for alpha in (shares, claims):
                alpha[image, part.of] += alpha[image, part.keypoint]
                alpha[image, part.keypoint] = 0
            found[image, part.keypoint] = False
    return replace(claimed, found=found, layer_alpha=claims)


@dataclass(frozen=True)
class _Part:
    keypoint: int
    of: int  # the keypoint of its thing


def _a_part(shares: Tensor, claims: Tensor, found: Tensor, least: float) -> _Part | None:
    """The keypoint that is most of all a part; None where none is. shares, claims (K, H, W), found (K,)."""
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
    return _Part(most, int(neighbour[most])) if float(signs[most]) >= least else None


def _edges(labels: Tensor, layers: int) -> Tensor:
    """labels (H, W) -> (K, K + 1): sides of pixels along which layer k meets the background (0) or layer j (j + 1)."""
    number = layers + 1
    sides = [(labels[:, 1:], labels[:, :-1]), (labels[1:], labels[:-1])]
    pairs = torch.cat([torch.cat([(a * number + b).flatten(), (b * number + a).flatten()]) for a, b in sides])
    met = torch.bincount(pairs, minlength=number**2).view(number, number)
    return met.fill_diagonal_(0)[1:]
