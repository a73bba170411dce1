"""Keypoints that explain nothing of their own are left out, the least useful first.

Two keypoints on one thing each have a small gain, since the other covers for it: dropping both for that would lose the
thing. So they are dropped one after the other, and the gains of what is left are asked again. What remains is a set in
which every keypoint is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.data.flat_field import THRESHOLD
from tusk.detection.filter import keep_layers
from tusk.detection.gain import LEAST_BEHIND
from tusk.model.network import Network, Output

_LEAST_AREA = 2.0  # pixels of the feature map: a smaller thing has to explain as much as one of this size


@dataclass(frozen=True)
class _Composite:
    """Layers of one image at the feature map's size; N of them are candidates."""

    colour: Tensor  # (N, 3, h, w): each layer's weight times its colour
    weight: Tensor  # (N, 1, h, w): as a multiple of the background's
    background: Tensor  # (3, h, w)
    image: Tensor  # (3, h, w)

    def gains(self, left: Tensor) -> tuple[Tensor, Tensor]:
        """left (N,) bool -> (N,) by how much the squared error would grow without each, and the area that it covers."""
        shown = left.to(self.weight.dtype)[:, None, None, None]
        colour, weight = self.colour * shown, self.weight * shown
        colours, weights = colour.sum(0) + self.background, weight.sum(0) + 1  # (3, h, w), (1, h, w)
        error = (colours / weights - self.image).square().mean(0)  # (h, w)
        without = (colours - colour) / (weights - weight).clamp_min(1)  # (N, 3, h, w)
        worse = (without - self.image).square().mean(1) - error  # (N, h, w)
        return worse.sum((1, 2)), (weight / weights).sum((1, 2, 3))


@torch.no_grad()
def explain_away(network: Network, images: Tensor, output: Output, least: float) -> tuple[Output, Tensor]:
    """images (B, 3, H, W) in [0, 1] after flat-field correction, and the network's output for them, with sizes.

    -> the output without keypoints that do not explain `least` of what a pixel at the threshold between background and
    thing differs by, in the mean over the pixels that they cover; and the gains (B, K) of the others, 0 for those.
    """
    assert output.layer_alpha is not None and output.layer_rgb is not None and output.size is not None
    background = network.background(images)
    assert background is not None
    stride = network.config.stride
    kept, gain = output.found.clone(), torch.zeros_like(output.score)
    small, behind = _pooled(images, stride), _pooled(background, stride)[0]
    for place in range(len(images)):
        slots = output.found[place].nonzero()[:, 0]  # (N,)
        if not len(slots):
            continue
        alpha, rgb = output.layer_alpha[place, slots], output.layer_rgb[place, slots]  # (N, 1 or 3, H, W)
        share = _pooled(alpha, stride)
        rest = (1 - share.sum(0)).clamp_min(LEAST_BEHIND)  # (1, h, w)
        layers = _Composite(_pooled(alpha * rgb, stride) / rest, share / rest, behind, small[place])
        reach = output.size[place, slots] / 2
        near = torch.cdist(output.xy[place, slots], output.xy[place, slots]) < reach[:, None] + reach
        left, gains = _least_set(layers, near, least)
        kept[place, slots], gain[place, slots] = left, torch.where(left, gains * stride**2, 0.0)
    return keep_layers(output, kept), gain


def _least_set(layers: _Composite, near: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """near (N, N) bool: whose layers may overlap -> which are left (N,), and all gains (N,)."""
    left = torch.ones(len(near), dtype=torch.bool, device=near.device)
    while True:
        gain, area = layers.gains(left)
        explained = gain / (area.clamp_min(_LEAST_AREA) * THRESHOLD**2)
        explained = torch.where(left, explained, torch.inf)
        # The least of its neighbourhood, everywhere in the image at once: what lies apart does not matter to it.
        lowest = torch.where(near, explained[None], torch.inf).min(1)
        own = torch.arange(len(near), device=near.device)
        dropped = left & (explained < least) & (lowest.indices == own)
        if not bool(dropped.any()):
            return left, gain
        left = left & ~dropped


def _pooled(values: Tensor, stride: int) -> Tensor:
    return F.avg_pool2d(values, stride, ceil_mode=True, count_include_pad=False)
