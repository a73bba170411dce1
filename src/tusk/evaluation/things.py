"""Whether points lie on things, judged by the pictures alone: no label, and nothing that the network learnt.

A thing is a connected region whose colour is far from a smooth background. That is a rough estimate: things that touch
are one region, and a picture without a plain background has none that is worth the name (`Foreground.clear`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

FloatArray = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

_THUMBNAIL = 32  # side of the picture that the background is fitted to, about
_ORDER = 3  # of the polynomial: bends like light on a table or through a microscope
_ROUNDS = 6  # of reweighting
_ROUGH_WEIGHT = 0.05  # of pixels in the rougher half of the picture: background is flat
_LEAST_CONTRAST = 0.03  # of 1: a camera's noise is below it
_CLEAR = 0.5  # spread of the background's colours over the foreground's distance from it, at most
_REACH = 0.025  # of the side: the middle of a bent thing lies beside it
_SPECK = 0.002  # of the picture: smaller regions are not looked for
_SINGLE = 1.3  # times the lower quartile of the regions' areas: larger ones may be things that touch
_APART = 1.2  # times half the local width of a region: two points that are nearer are on one thing
_ENOUGH = 30  # points on regions of single things, to speak of a share of them
_CONNECTED = np.ones((3, 3), np.bool_)


@dataclass(frozen=True)
class Foreground:
    """Where the things of N pictures are, as far as the pictures say."""

    masks: BoolArray  # (N, H, W)
    clear: BoolArray  # (N,): the background is plain enough to tell


@dataclass(frozen=True)
class ThingFigures:
    """Points and things of the pictures whose foreground is clear."""

    pictures: int  # such pictures
    on_nothing: float  # share of the points that lie on no thing
    doubled: float  # share of the points that lie on a thing which has another point already
    missed: float  # share of the things without a point
    beside: BoolArray  # (N, K): the points on no thing; False in pictures that are not clear


def find_foreground(images: Tensor) -> Foreground:
    """images (N, 3, H, W), uint8.

    Pixels are parted by Otsu's threshold (1979) on the root of their distance from the background: on the distance
    itself, one dark thing would hide the pale ones.
    """
    values = _blurred(images.float() / 255)
    distance = (values - smooth_background(values)).square().sum(1).sqrt().numpy()  # (N, H, W)
    masks = np.zeros(distance.shape, np.bool_)
    clear = np.zeros(len(distance), np.bool_)
    for number, far in enumerate(distance):
        mask = (np.sqrt(far) > _otsu(np.sqrt(far))) & (far > _LEAST_CONTRAST)
        masks[number] = mask = _tidy(mask)
        if mask.any() and not mask.all():
            clear[number] = float(np.sqrt(np.square(far[~mask]).mean())) <= _CLEAR * float(far[mask].mean())
    return Foreground(masks, clear)


def smooth_background(images: Tensor) -> Tensor:
    """images (N, 3, H, W) -> the same: a polynomial through the flat parts of each, robust against what is not."""
    height, width = images.shape[-2:]
    step = max(1, min(height, width) // _THUMBNAIL)
    small = F.avg_pool2d(images, step)  # (N, 3, h, w)
    padded = F.pad(small, (1, 1, 1, 1), mode="replicate")
    rough = (F.avg_pool2d(padded.square(), 3, 1) - F.avg_pool2d(padded, 3, 1).square()).sum(1).flatten(1)  # (N, P)
    flat = rough <= rough.median(1, keepdim=True).values
    pixels = small.flatten(2).transpose(1, 2)  # (N, P, 3)
    terms = _terms(*small.shape[-2:])  # (P, T)
    keep_small = 1e-4 * torch.eye(terms.shape[1])
    start = [own[is_flat].median(0).values for own, is_flat in zip(pixels, flat, strict=True)]
    fit = torch.stack(start)[:, None].expand_as(pixels)
    factors = pixels.new_zeros(len(pixels), terms.shape[1], 3)
    for _ in range(_ROUNDS):
        residual = (pixels - fit).square().sum(-1).sqrt()  # (N, P)
        usual = [own[is_flat].median() for own, is_flat in zip(residual, flat, strict=True)]
        scale = 3 * torch.stack(usual)[:, None].clamp_min(0.01)
        weight = (flat + _ROUGH_WEIGHT) / (1 + (residual / scale).square()).square()
        normal = torch.einsum("np,pi,pj->nij", weight, terms, terms) + keep_small * weight.sum(1)[:, None, None]
        factors = torch.linalg.solve(normal, torch.einsum("np,pi,npc->nic", weight, terms, pixels))
        fit = terms @ factors
    return (_terms(height, width) @ factors).transpose(1, 2).reshape(images.shape)


def thing_figures(foreground: Foreground, xy: FloatArray, found: BoolArray) -> ThingFigures:
    """xy (N, K, 2) in pixels of the pictures, found (N, K).

    Two points are on one thing where their region is no larger than single things are, or where they are nearer to each
    other than the region is wide around them; elsewhere the region may be several things that touch.
    """
    side = max(foreground.masks.shape[1:])
    beside = np.zeros(found.shape, np.bool_)
    regions = [_regions(mask) for mask in foreground.masks[foreground.clear]]
    least = max(9.0, _SPECK * side * side)
    areas = np.concatenate([own.areas[own.areas >= least] for own in regions]) if regions else np.zeros(0)
    single = _SINGLE * float(np.quantile(areas, 0.25)) if len(areas) else 0.0
    points = on = near = singles = doubles = things = hit = 0
    for number, own in zip(np.flatnonzero(foreground.clear), regions, strict=True):
        places = xy[number][found[number]]
        region = own.at(places, max(1.0, _REACH * side))
        beside[number, np.flatnonzero(found[number])[region == 0]] = True
        large = np.flatnonzero(own.areas >= least) + 1
        things, hit = things + len(large), hit + len(np.intersect1d(large, region))
        points, on = points + len(region), on + int((region > 0).sum())
        for which in np.unique(region[region > 0]):
            inside = places[region == which]
            if own.areas[which - 1] <= single:
                singles, doubles = singles + len(inside), doubles + len(inside) - 1
            near += _crowded(inside, own.half_width(inside, side))
    shares = [near / max(1, on), doubles / singles if singles >= _ENOUGH else 0.0]
    return ThingFigures(
        int(foreground.clear.sum()), 1 - on / max(1, points), max(shares), 1 - hit / max(1, things), beside
    )


@dataclass(frozen=True)
class _Regions:
    """The connected regions of one mask."""

    labels: IntArray  # (H, W): 0 on the background, i on region i
    areas: IntArray  # of region 1, 2 ...
    depth: FloatArray  # (H, W): how far a pixel of a region is from its edge

    def at(self, xy: FloatArray, reach: float) -> IntArray:
        """The region of each point: the nearest within reach, else 0."""
        if not len(self.areas) or not len(xy):
            return np.zeros(len(xy), np.int64)
        far, (rows, columns) = ndimage.distance_transform_edt(self.labels == 0, return_indices=True)
        row, column = _pixels(xy, self.labels.shape)
        nearest = self.labels[rows[row, column], columns[row, column]]
        return np.where(far[row, column] <= reach, nearest, 0)

    def half_width(self, xy: FloatArray, side: int) -> FloatArray:
        """Of the region around each point."""
        reach = max(1, round(0.06 * side))
        row, column = _pixels(xy, self.labels.shape)
        widths: list[float] = []
        for y, x in zip(row, column, strict=True):
            around = self.depth[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1]
            widths.append(float(around.max()))
        return np.array(widths)


def _regions(mask: BoolArray) -> _Regions:
    labels, _ = ndimage.label(mask, structure=_CONNECTED)
    areas = np.bincount(labels.ravel())[1:].astype(np.int64)
    depth = ndimage.distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1]
    return _Regions(labels.astype(np.int64), areas, depth)


def _crowded(xy: FloatArray, half_width: FloatArray) -> int:
    """How many points lie too near to one before them to be on another thing."""
    kept: list[int] = []
    for own in range(len(xy)):
        if all(np.hypot(*(xy[own] - xy[other])) >= _APART * half_width[own] for other in kept):
            kept.append(own)
    return len(xy) - len(kept)


def _pixels(xy: FloatArray, shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Rows and columns of the pixels that the points lie on."""
    column, row = np.rint(xy).astype(np.int64).T
    return row.clip(0, shape[0] - 1), column.clip(0, shape[1] - 1)


def _tidy(mask: BoolArray) -> BoolArray:
    """Cracks closed, holes filled, and, in pictures large enough for it, single pixels and threads taken away."""
    padded = np.pad(mask, 2, mode="edge")
    padded = ndimage.binary_closing(padded)
    padded = ndimage.binary_fill_holes(padded)
    if min(mask.shape) > 2 * _THUMBNAIL:
        padded = ndimage.binary_opening(padded)
    return np.asarray(padded[2:-2, 2:-2], np.bool_)


def _otsu(values: FloatArray, bins: int = 64) -> float:
    """The cut of a histogram whose two sides differ most."""
    counts, edges = np.histogram(values, bins)
    shares, middles = counts / counts.sum(), (edges[1:] + edges[:-1]) / 2
    below, sums = np.cumsum(shares)[:-1], np.cumsum(shares * middles)
    rest = np.maximum(below * (1 - below), 1e-12)
    between = np.square(sums[-1] * below - sums[:-1]) / rest
    return float(edges[int(between.argmax()) + 1])


def _terms(height: int, width: int) -> Tensor:
    """(H*W, T): the powers of x and y, from -1 to 1."""
    y = ((torch.arange(height) + 0.5) * 2 / height - 1)[:, None].expand(height, width)
    x = ((torch.arange(width) + 0.5) * 2 / width - 1).expand(height, width)
    powers = [x**i * y**j for i in range(_ORDER + 1) for j in range(_ORDER + 1 - i)]
    return torch.stack(powers, -1).view(height * width, -1)


def _blurred(images: Tensor) -> Tensor:
    """Each pixel with a little of its neighbours: noise of single pixels is no thing."""
    weights = images.new_tensor([1.0, 2.0, 1.0]) / 4
    kernel = (weights[:, None] * weights).expand(3, 1, 3, 3)
    return F.conv2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), kernel, groups=3)
