"""Layers -> which keypoint each pixel belongs to, in the network's image and in the original picture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.data.framing import Placement
from tusk.detection.detections import BoolArray, UInt16Array
from tusk.model.network import Network, Output

_FAR = 4.0  # tolerances: a highlight fits no layer, and no layer should win it for being a little less wrong
_BRIGHTNESS = 0.1  # weight of a squared difference in brightness: an object is lit and shaded, but keeps its hue
_ROUNDS = 2  # of recolouring; more change nothing
_DOUBT = 5.0  # pixels: a layer that has few of its own is not recoloured by them
_VALUES_AT_ONCE = 1 << 22  # shares are enlarged strip by strip: a large photograph's would fill the memory


def pixel_shares(alpha: Tensor) -> Tensor:
    """alpha (B, K, 1, H, W) of the layers -> (B, 1 + K, H, W): the background's share of each pixel, then the layers'.

    What the layers leave of a pixel's 1 is the background's: its colour's where the network has learnt one, and all of
    it where no window reaches. Without either, the layers share out every pixel, as in the paper.
    """
    layers = alpha[:, :, 0]
    return torch.cat([(1 - layers.sum(1, keepdim=True)).clamp_min(0), layers], 1)


def label_map(shares: Tensor, *, background: bool = True) -> Tensor:
    """shares (B, 1 + K, H, W) -> (B, H, W): 0 for the background, k + 1 for keypoint k: the largest share wins.

    With `background` False the background only gets what no layer reaches: which layer would have the pixel, if it is
    an object's?
    """
    if background:
        return shares.argmax(1)
    layers = shares[:, 1:]
    return torch.where(layers.sum(1) > 0, layers.argmax(1) + 1, 0)


@torch.no_grad()
def claim_pixels(network: Network, images: Tensor, output: Output, tolerance: float | None) -> Output:
    """The output with alphas that say whose each pixel of the images (B, 3, H, W) is, by Bayes' rule.

    A layer is decoded from one descriptor, and reaches over the edge of an object in front of its own. Its alpha is the
    prior; the pixel's own colour then tells which of the layers that share it fits. A descriptor also misses the exact
    colour of its object, so each layer is recoloured by the mean of its error in the pixels that are its own. The
    reconstruction stays as it was, and so does everything without a tolerance (see `detection.mask_tolerance`).
    """
    if tolerance is None or output.layer_alpha is None or output.layer_rgb is None:
        return output
    pixels = images[:, None]  # (B, 1, 3, H, W)

    def far(colour: Tensor) -> Tensor:
        """(B, N, 3, H, W) -> (B, N, 1, H, W): how far it is from the pixel's colour, in squared tolerances."""
        off = colour - pixels
        bright = off.mean(2, keepdim=True)
        apart = ((off - bright).square() + _BRIGHTNESS * bright.square()).sum(2, keepdim=True)
        return (apart / tolerance**2).clamp_max(_FAR**2)

    alpha, rgb = output.layer_alpha, output.layer_rgb
    behind = torch.zeros_like(alpha[:, :1])
    if (background := network.background(images)) is not None:
        behind = (1 - alpha.sum(1, keepdim=True)).clamp_min(0) * (-far(background[:, None]) / 2).exp()

    def claims(away: Tensor) -> Tensor:
        claimed = alpha * (-away / 2).exp()  # (B, K, 1, H, W)
        every = claimed.sum(1, keepdim=True) + behind
        return claimed / every.clamp_min(torch.finfo(every.dtype).tiny)

    away = far(rgb)
    for _ in range(_ROUNDS):
        own = claims(away) * (away < _FAR**2)
        off = (own * (pixels - rgb)).sum((-2, -1), keepdim=True) / (own.sum((-2, -1), keepdim=True) + _DOUBT)
        away = far(rgb + off)  # off (B, K, 3, 1, 1)
    return replace(output, layer_alpha=claims(away))


def mask_map(shares: Tensor, kept: BoolArray, placement: Placement, width: int, height: int) -> UInt16Array:
    """shares (1 + K, h, w) of the network's image, kept (K,) -> (height, width) of the original: as `label_map`.

    A layer that was not kept is as if it had never been there: its pixels go to the largest of the other shares. The
    shares are enlarged and then compared, so that edges are as smooth as the enlargement is.
    """
    number = np.concatenate([[0], 1 + np.flatnonzero(kept)]).astype(np.uint16)
    values = shares.cpu().numpy()[number].astype(np.float32, copy=False)  # (1 + kept, h, w)
    _, rows, columns = values.shape
    x = placement.to_network(np.stack([np.arange(width), np.zeros(width)], 1))[:, 0]
    y = placement.to_network(np.stack([np.zeros(height), np.arange(height)], 1))[:, 1]
    # What lies beyond the picture in the network's image is bars, not neighbours.
    left, right = placement.column, min(placement.column + placement.columns, columns) - 1
    top, bottom = placement.row, min(placement.row + placement.rows, rows) - 1
    result = np.empty((height, width), np.uint16)
    strip = max(1, _VALUES_AT_ONCE // (len(values) * width))
    for start in range(0, height, strip):
        part = _blended(values, 1, np.clip(y[start : start + strip], top, bottom))  # (1 + kept, strip, w)
        part = _blended(part, 2, np.clip(x, left, right))  # (1 + kept, strip, width)
        result[start : start + strip] = number[part.argmax(0)]
    return result


def _blended(values: npt.NDArray[np.float32], axis: int, places: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Linear interpolation along an axis at these places."""
    first = np.floor(places).astype(np.int64)
    second = np.minimum(first + 1, values.shape[axis] - 1)
    shape = [1, 1, 1]
    shape[axis] = len(places)
    weight = (places - first).astype(np.float32).reshape(shape)
    blended: npt.NDArray[np.float32] = values.take(first, axis) * (1 - weight) + values.take(second, axis) * weight
    return blended
