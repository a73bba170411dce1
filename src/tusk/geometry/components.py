"""Connected components: pieces of foreground that hang together, where each lies and how large it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Components:
    """Of a batch of maps; N slots each, the largest component first, those without one empty."""

    xy: Tensor  # (B, N, 2): its centre of mass
    radius: Tensor  # (B, N) of the disc whose pixels lie as far from their centre as its own, in the root mean square
    found: Tensor  # (B, N) bool
    cut: Tensor  # (B, N) bool: it goes on beyond the edge
    label: Tensor  # (B, h, w) long: which slot a pixel belongs to, N for the background and what found no slot


def label_components(mask: Tensor) -> Tensor:
    """mask (B, h, w) bool -> (B, h, w) long: -1 for the background, else a number that only its component has.

    Pixels hang together by their sides. The number is the largest index of a pixel in it, which spreads until nothing
    changes.
    """
    height, width = mask.shape[-2:]
    index = torch.arange(height * width, device=mask.device).view(height, width)
    label = torch.where(mask, index, -1)
    while True:
        spread = label.clone()
        for direction in (1, 2):
            last = label.shape[direction] - 1
            low, high = spread.narrow(direction, 0, last), spread.narrow(direction, 1, last)
            before = spread.clone()
            torch.maximum(low, before.narrow(direction, 1, last), out=low)
            torch.maximum(high, before.narrow(direction, 0, last), out=high)
            spread = torch.where(mask, spread, -1)
        # Each pixel takes the number of the pixel that it is numbered after: paths halve, however long they are.
        flat = spread.flatten(1)
        spread = torch.where(mask, flat.gather(1, flat.clamp_min(0)).view_as(spread), -1)
        if torch.equal(spread, label):
            return label
        label = spread


def find_components(mask: Tensor, most: int) -> Components:
    """mask (B, h, w) bool -> its components, the `most` largest of each map."""
    batch, height, width = mask.shape
    pixels = height * width
    label = label_components(mask).flatten(1)  # (B, h*w)
    place = torch.arange(pixels, device=mask.device)
    x, y = (place % width).to(torch.float32), (place // width).to(torch.float32)
    edge = (x == 0) | (y == 0) | (x == width - 1) | (y == height - 1)
    values = torch.stack([torch.ones_like(x), x, y, x.square() + y.square(), edge.to(x.dtype)])  # (5, h*w)
    slot = torch.where(label < 0, pixels, label)  # (B, h*w), the last for the background
    sums = values.new_zeros(batch, 5, pixels + 1)
    sums.scatter_add_(2, slot[:, None].expand(-1, 5, -1), values.expand(batch, -1, -1))
    count = min(most, pixels)
    area, root = sums[:, 0, :-1].topk(count)  # (B, N)
    _, total_x, total_y, squares, at_edge = sums.gather(2, root[:, None].expand(-1, 5, -1)).unbind(1)  # (B, N) each
    number = area.clamp_min(1)
    xy = torch.stack([total_x, total_y], -1) / number[..., None]
    # A pixel is a square: its own spread counts, 1/12 in each direction.
    spread = (squares / number - xy.square().sum(-1)).clamp_min(0) + 1 / 6
    found = area > 0
    slots = torch.full((batch, pixels + 1), count, dtype=torch.long, device=mask.device)
    order = torch.arange(count, device=mask.device).expand(batch, -1)
    slots.scatter_(1, root, torch.where(found, order, count))
    slots[:, -1] = count
    return Components(xy, math.sqrt(2) * spread.sqrt(), found, at_edge > 0, slots.gather(1, slot).view_as(mask))
