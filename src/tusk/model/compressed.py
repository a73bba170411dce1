"""The whole-image layers with fewer operations and the same result.

A layer's input is one small Gaussian on a map of zeros. So in the first levels of the U-Net's way down every map is
constant along its columns but for the rows near the keypoint and the rows near the image's border (which feel the zero
padding), and the same the other way round. Such a map is kept on a small canvas: the rows near the two borders and
those around the keypoint, one of them standing for all rows that were left out:

    map[y, x] = canvas[row_place[y], column_place[x]]

Nothing is approximated by that:
- A 3x3 convolution has the right neighbours where rows were left out if the rows on both sides of the gap are of the
  constant kind. `plan` keeps as many rows as the receptive field of all convolutions at a level eats up, and one more.
- 2x2 max-pooling finds its pairs because all parts of a canvas begin and end at even rows.
- GroupNorm's mean and variance count every row and column of the canvas as often as it occurs in the map.
- On the way up the first convolution of [from below, skip] is the sum of one over each; the one over the skip stays on
  the canvas, and only its result is put back to full size. The one over what comes from below is `upsampled.py`'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.model.splat import gaussian_profile, splat_each
from tusk.model.unet import DoubleConv, UNet
from tusk.model.upsampled import conv_upsampled

_CUT_OFF = 1e-12  # what of the Gaussian, relative to its peak, counts as nothing
_WORTH_IT = 0.5  # a canvas with more than this share of the map's pixels costs more than it saves


@dataclass(frozen=True)
class Kept:
    """Which of the `full` rows (or columns) a canvas keeps: `border` at each end, `middle` around the keypoint."""

    border: int
    middle: int
    full: int

    @property
    def size(self) -> int:
        return 2 * self.border + self.middle


@dataclass(frozen=True)
class Axis:
    """The rows (or columns) of the canvases of N layers; each layer's middle part begins at its own `start`."""

    kept: Kept
    start: Tensor  # (N,) whole numbers

    def rows(self) -> Tensor:
        """(N, size): the row of the map that each row of the canvas is."""
        kept = self.kept
        index = torch.arange(kept.size, device=self.start.device)  # (size,)
        middle = index - kept.border + self.start[:, None]  # (N, size)
        rows = torch.where(index < kept.border, index, middle)
        return torch.where(index < kept.border + kept.middle, rows, index - kept.size + kept.full)

    def places(self) -> Tensor:
        """(N, full): the row of the canvas that each row of the map is like."""
        kept, start = self.kept, self.start[:, None]
        row = torch.arange(kept.full, device=start.device)  # (full,)
        before = row.clamp(max=kept.border - 1)  # the last of the first border is also the gap's behind it
        after = (row - kept.full + kept.size).clamp(min=kept.border + kept.middle)
        places = torch.where(row < start, before, row - start + kept.border)
        return torch.where(row < start + kept.middle, places, after)

    def halved(self) -> Axis:
        """The same after 2x2 pooling."""
        kept = self.kept
        return Axis(Kept(kept.border // 2, kept.middle // 2, kept.full // 2), self.start // 2)


@dataclass(frozen=True)
class Canvas:
    """A level's small maps: what they keep of the map, for N layers."""

    rows: Axis
    columns: Axis

    def shares(self, dtype: torch.dtype) -> Tensor:
        """(N, size, size): the share of the map's pixels that each pixel of the canvas represents."""
        rows, columns = (_one_hot(axis.places(), axis.kept.size, dtype).mean(1) for axis in (self.rows, self.columns))
        return rows[:, :, None] * columns[:, None]

    def put_back(self, small: Tensor, onto: Tensor) -> Tensor:
        """onto (N, C, H, W) plus the map of the canvas small (N, C, size, size), in the memory of the former."""
        left, right = _spread_columns(small, self.rows.places(), self.columns.places())
        return onto.flatten(0, 1).baddbmm_(left, right).view_as(onto)

    def pool(self, small: Tensor, onto: Canvas | None) -> Tensor:
        """small (N, C, size, size) -> what enters the next level: its canvas `onto`, or the map if there is none."""
        rows, columns = self.rows.halved().places(), self.columns.halved().places()
        if onto is not None:
            rows, columns = rows.gather(1, onto.rows.rows()), columns.gather(1, onto.columns.rows())
        left, right = _spread_columns(F.max_pool2d(small, 2), rows, columns)
        return torch.bmm(left, right).view(*small.shape[:2], rows.shape[1], columns.shape[1])


def _spread_columns(small: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Two factors (N*C, H, size) and (N*C, size, W) whose product is small (N, C, size, size) at these places.

    A product with a matrix of zeros and ones, and not indexing, because its gradient is as quick as itself.
    """
    count, channels, height, width = small.shape
    right = _one_hot(columns, width, small.dtype).transpose(1, 2)  # (N, size, W)
    wide = torch.bmm(small.reshape(count, channels * height, width), right)  # (N, C*size, W)
    left = _one_hot(rows, height, small.dtype)  # (N, H, size)
    left = left[:, None].expand(-1, channels, -1, -1).flatten(0, 1)  # (N*C, H, size)
    return left, wide.view(count * channels, height, -1)


def _one_hot(places: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """(N, n) -> (N, n, size)."""
    return (places[..., None] == torch.arange(size, device=places.device)).to(dtype)


def support(variance: float) -> int:
    """How far from its nearest pixel a Gaussian reaches, in pixels; beyond, it is below `_CUT_OFF` of its peak.

    The nearest pixel is at most 1/2 away from the centre, so pixel r + 1 is r + 1/2 away or more.
    """
    return math.ceil(math.sqrt(2 * variance * -math.log(_CUT_OFF) + 0.25) - 0.5)


def plan(size: tuple[int, int], levels: int, variance: float) -> list[tuple[Kept, Kept]]:
    """(rows, columns) to keep at each of the first levels, as far down as it pays; the deepest level is never there."""
    plans: list[tuple[Kept, Kept]] = []
    touched = 2 * support(variance) + 1  # rows that feel the keypoint
    ring = -1  # rows that feel the border; the first convolution reads zeros there, which are like its padding
    for level in range(levels - 1):
        touched, ring = touched + 4, ring + 2  # by two convolutions
        # The skip's convolution on the way up needs one more row on each side of the middle, and two more at the
        # border: one that still feels it, and one that does not. All is rounded up to even rows.
        border, middle = _even(ring + 2), _even(touched + 3)
        rows, columns = (_keep(border, middle, length >> level) for length in size)
        if rows.size * columns.size > _WORTH_IT * rows.full * columns.full:
            break
        plans.append((rows, columns))
        touched, ring = touched // 2 + 1, (ring + 1) // 2  # by pooling
    return plans


def _even(count: int) -> int:
    return count + count % 2


def _keep(border: int, middle: int, full: int) -> Kept:
    return Kept(border, middle, full) if 2 * border + middle < full else Kept(0, full, full)


def _axes(plans: list[Kept], centre: Tensor, reach: int) -> list[Axis]:
    """The axes of all planned levels for keypoints at centre (N,), whose Gaussians reach so far."""
    axes = []
    nearest = centre.detach().round().long().clamp(0, plans[0].full - 1)
    first = nearest - reach  # the first row that feels the keypoint
    for kept in plans:
        first = first - 2
        # The middle part begins at an even row before that. At the border it is moved inwards: the rows that it then
        # misses are those of the border part, and there is no gap between the two.
        start = (first - 1).div(2, rounding_mode="floor") * 2
        axes.append(Axis(kept, start.clamp(kept.border, kept.full - kept.border - kept.middle)))
        first = first.div(2, rounding_mode="floor")
    return axes


def decode_layers(
    unet: UNet, xy: Tensor, score: Tensor, descriptors: Tensor, size: tuple[int, int], variance: float
) -> Tensor:
    """What `unet` makes of every keypoint's own map: xy (B, K, 2), score (B, K), descriptors (B, K, C).

    -> (B*K, outputs, H, W), equal to `unet(splat_each(...))` up to rounding.
    """
    plans = plan(size, len(unet.down), variance)
    if not plans:
        dense: Tensor = unet(splat_each(xy, score, descriptors, *size, variance))
        return dense
    x, y = xy.flatten(0, 1).unbind(-1)  # (N,) with N = B*K
    reach = support(variance)
    rows = _axes([rows for rows, _ in plans], y, reach)
    columns = _axes([columns for _, columns in plans], x, reach)
    canvases = [Canvas(*axes) for axes in zip(rows, columns, strict=True)]

    # The Gaussian is normalised over the whole image, and then read where the canvas is.
    row_profile = gaussian_profile(y, size[0], variance).gather(1, rows[0].rows())  # (N, size)
    column_profile = gaussian_profile(x, size[1], variance).gather(1, columns[0].rows())
    carried = (descriptors * score[..., None]).flatten(0, 1)  # (N, C)
    small = carried[:, :, None, None] * (row_profile[:, :, None] * column_profile[:, None])[:, None]
    result: Tensor = unet.last(unet.mixed(partial(_trunk, unet), small, canvases))  # (N, outputs, H, W)
    return result


def _trunk(unet: UNet, x: Tensor, canvases: list[Canvas]) -> Tensor:
    """`unet.trunk` with the first levels of the way down on canvases: x (N, C, size, size) -> (N, width, H, W)."""
    skips: list[Tensor] = []
    for level, block in enumerate(unet.down[:-1]):
        assert isinstance(block, DoubleConv)
        if level < len(canvases):
            x = _double_conv(block, x, canvases[level].shares(x.dtype))  # (N, width * 2**level, size, size)
            skips.append(x)
            x = canvases[level].pool(x, canvases[level + 1] if level + 1 < len(canvases) else None)
        else:
            x = block(x)  # (N, width * 2**level, H / 2**level, W / 2**level)
            skips.append(x)
            x = F.max_pool2d(x, 2)
    x = unet.down[-1](x)
    for level, block in zip(reversed(range(len(skips))), unet.up, strict=True):
        assert isinstance(block, DoubleConv)
        skip = skips.pop()
        below, beside = block.conv1.weight.split([x.shape[1], skip.shape[1]], dim=1)
        x = conv_upsampled(x, below)  # (N, width * 2**level, H / 2**level, W / 2**level)
        skip = F.conv2d(skip, beside, block.conv1.bias, padding=1)
        x = canvases[level].put_back(skip, onto=x) if level < len(canvases) else x.add_(skip)
        x = block.after_first(x)
    return x


def _double_conv(block: DoubleConv, x: Tensor, shares: Tensor) -> Tensor:
    """`block` on a canvas."""
    assert isinstance(block.norm1, nn.GroupNorm) and isinstance(block.norm2, nn.GroupNorm)
    x = F.relu_(_group_norm(block.norm1, block.conv1(x), shares))
    return F.relu_(_group_norm(block.norm2, block.conv2(x), shares))


def _group_norm(norm: nn.GroupNorm, x: Tensor, shares: Tensor) -> Tensor:
    """`norm` of the map whose canvas x (N, C, size, size) is, with the shares (N, size, size) of its pixels."""
    grouped = x.unflatten(1, (norm.num_groups, -1))  # (N, groups, C / groups, size, size)
    weight = (shares / grouped.shape[2])[:, None, None]  # (N, 1, 1, size, size)

    def mean(values: Tensor) -> Tensor:
        # `sum` adds in pairs of pairs; a matrix product adds one by one and is several times less precise here.
        total: Tensor = (values * weight).sum((2, 3, 4), keepdim=True)  # (N, groups, 1, 1, 1)
        return total

    # Nearly all of a map is one value and its variance tiny beside that: so the mean is taken off in two steps, the
    # second for what the first lost to rounding.
    centred = grouped - mean(grouped.detach())
    centred = centred - mean(centred)
    normal = (centred * (mean(centred.square()) + norm.eps).rsqrt()).view_as(x)
    return torch.addcmul(norm.bias[:, None, None], normal, norm.weight[:, None, None])
