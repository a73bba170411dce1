"""Layers -> which instance is seen at each pixel of the original picture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tusk.data.framing import Placement
from tusk.detection.detections import BoolArray, UInt16Array

FloatArray = npt.NDArray[np.floating]
_VALUES_AT_ONCE = 1 << 22  # shares are enlarged strip by strip: a large photograph's would fill the memory


def mask_map(alpha: FloatArray, kept: BoolArray, placement: Placement, width: int, height: int) -> UInt16Array:
    """alpha (K, h, w) of the layers in the network's image, kept (K,) -> (height, width) of the original.

    0 where the background has the largest share, else 1 + the layer. A layer that was not kept is as if it had never
    been there: its pixels go to whoever has the most of the rest. The shares are enlarged and then compared, so that
    edges are as smooth as the enlargement is.
    """
    _, rows, columns = alpha.shape
    behind = np.clip(1 - alpha.sum(0, keepdims=True), 0, 1)
    shares = np.concatenate([behind, alpha[kept]]).astype(np.float32)  # (1 + kept, h, w): the background first
    number = np.concatenate([[0], 1 + np.flatnonzero(kept)]).astype(np.uint16)
    x = placement.to_network(np.stack([np.arange(width), np.zeros(width)], 1))[:, 0]
    y = placement.to_network(np.stack([np.zeros(height), np.arange(height)], 1))[:, 1]
    # What lies beyond the picture in the network's image is bars, not neighbours.
    left, right = placement.column, min(placement.column + placement.columns, columns) - 1
    top, bottom = placement.row, min(placement.row + placement.rows, rows) - 1
    result = np.empty((height, width), np.uint16)
    strip = max(1, _VALUES_AT_ONCE // (len(shares) * width))
    for start in range(0, height, strip):
        part = _blended(shares, 1, np.clip(y[start : start + strip], top, bottom))  # (1 + kept, strip, w)
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
