"""Keypoints with sizes -> image: each thing is decoded on a small canvas and placed at its own size."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.model.background import Kind, make_background
from tusk.model.decoder import Decoded
from tusk.model.keypoints import Keypoints

_CANVAS = 16  # side: a pixel of it is a fifth of a radius
_SPAN = 1.5  # radii from the middle of a canvas to its edge: a thing need not be round
_WIDTH = 64  # channels of the first, 4 x 4 step
_LARGEST = 8.0  # logit of alpha
_ROUND = 64  # slots


class CanvasDecoder(nn.Module):
    """(locations, sizes, scores, descriptors) -> one RGBA layer for each keypoint, before a background.

    What a thing looks like is decoded from its descriptor alone, always on a canvas of the same size; where it lies and
    how large it is only says where the canvas goes. So a small thing is decoded as well as a large one, location and
    size get gradients of their own, and the time does not depend on the size of things.
    """

    def __init__(self, channels: int, stride: int, background: Kind = "flat") -> None:
        super().__init__()
        self.stride = stride
        self.background = make_background(background)
        self.first = nn.Linear(channels, _WIDTH * 16)
        widths = (_WIDTH, _WIDTH // 2, _WIDTH // 4)
        self.convolutions = nn.ModuleList(nn.Conv2d(before, after, 3, padding=1) for before, after in pairwise(widths))
        self.last = nn.Conv2d(widths[-1], 4, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        assert self.last.bias is not None
        nn.init.zeros_(self.last.bias)
        self.tint = nn.Linear(channels, 3)

    def start_at(self, colour: Tensor) -> None:
        """The background is known from the start."""

    def forward(
        self,
        points: Keypoints,
        descriptors: Tensor,
        size: tuple[int, int],
        variance: float,
        thumbnail: Tensor | None = None,
        *,
        layers: bool = True,
    ) -> Decoded:
        """points in feature-map pixels, descriptors (B, K, C), size (h, w) of the feature map.

        With `layers`, everything is at the image's size, h*s x w*s. Without, the reconstruction and its cover are at
        the feature map's: a canvas has no finer detail than that, and training has s * s times less to do. `variance`
        is that of other decoders' Gaussians, and has no use here.
        """
        del variance
        assert points.radius is not None
        batch, count = points.score.shape
        step = self.stride if layers else 1
        height, width = size[0] * step, size[1] * step
        slots = _used_slots(points.found)  # (N,) of the B*K
        xy = (points.xy.flatten(0, 1)[slots] + 0.5) * step - 0.5  # (N, 2)
        radius = points.radius.flatten()[slots] * step  # (N,)
        drawn = self.draw(descriptors.flatten(0, 1)[slots])  # (N, 4, c, c)
        placed, inside = place_canvases(drawn, xy, radius, (height, width))
        # A thing is there or not, however sure that is. With a gradient to the scores, keypoints would be rewarded on
        # the rims that the layers of others leave: every large thing would get small ones around it.
        there = points.found.flatten()[slots].to(placed.dtype)
        weight = placed[:, 3:].exp() * inside * there[:, None, None, None]  # (N, 1, H, W): in the background's
        rgb = placed[:, :3]  # (N, 3, H, W)
        sums = rgb.new_zeros(batch, 4, height, width)
        sums = sums.index_add(0, slots // count, torch.cat([rgb * weight, weight], 1))
        every = sums[:, 3:] + 1  # (B, 1, H, W)
        colour = sums[:, :3]
        if self.background is not None:
            colour = colour + self.background(thumbnail, (height, width), colour.device)
        cover = 1 - 1 / every
        if not layers:
            return Decoded(colour / every, cover=cover)
        # A slot without a thing has an empty layer.
        alpha = weight / every[slots // count]
        rgb, alpha = (
            values.new_zeros(batch * count, *values.shape[1:]).index_copy(0, slots, values).unflatten(0, (batch, count))
            for values in (rgb, alpha)
        )
        return Decoded(colour / every, rgb, alpha, cover)

    def draw(self, descriptors: Tensor) -> Tensor:
        """(N, C) of length 1 -> (N, 4, c, c): RGB in [0, 1], and the logarithm of the layer's weight."""
        values = descriptors * math.sqrt(descriptors.shape[-1])  # about 1 in each channel
        x = F.relu(self.first(values)).view(-1, _WIDTH, 4, 4)
        for convolution in self.convolutions:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = F.relu(convolution(x))  # (N, 32, 8, 8), then (N, 16, 16, 16)
        x = self.last(x)
        rgb = torch.sigmoid(x[:, :3] + self.tint(values)[:, :, None, None])
        return torch.cat([rgb, (x[:, 3:] + _first_alpha(x.device)).clamp(-_LARGEST, _LARGEST)], 1)


def _used_slots(found: Tensor) -> Tensor:
    """found (B, K) bool -> (N,) the slots that are drawn: those with a thing, mostly a third, and a few without.

    Their number is rounded up: with another one at every step, memory that one step leaves would not fit the next.
    """
    every = found.flatten()
    used = min(len(every), -(-int(every.sum()) // _ROUND) * _ROUND)
    return every.to(torch.uint8).argsort(descending=True, stable=True)[:used]


def _first_alpha(device: torch.device) -> Tensor:
    """(c, c): alpha starts as a disc of the keypoint's size; what is learnt is added to it.

    Made at every call: a buffer that is not stored would be left undefined where a model is loaded.
    """
    place = (torch.arange(_CANVAS, device=device) + 0.5) / _CANVAS * 2 - 1
    distance = (place[:, None] ** 2 + place**2).sqrt() * _SPAN  # in radii
    return (4 * (1 - distance)).clamp(-4, 3)


def place_canvases(canvases: Tensor, xy: Tensor, radius: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """canvases (N, C, c, c) at places (N, 2), for things of these radii (N,), both in pixels of an image of size (H, W)
    -> (N, C, H, W), and where the canvases lie, (N, 1, H, W)."""
    height, width = size
    reach = _SPAN * radius[:, None]
    across = (torch.arange(width, device=xy.device, dtype=xy.dtype) - xy[:, :1]) / reach  # (N, W) in [-1, 1] inside
    down = (torch.arange(height, device=xy.device, dtype=xy.dtype) - xy[:, 1:]) / reach  # (N, H)
    grid = torch.stack([across[:, None].expand(-1, height, -1), down[:, :, None].expand(-1, -1, width)], -1)
    placed = F.grid_sample(canvases, grid, mode="bilinear", padding_mode="border", align_corners=False)
    inside = ((down.abs() <= 1)[:, :, None] & (across.abs() <= 1)[:, None])[:, None]
    return placed, inside
