"""Flat-field correction of one picture: its own smooth background becomes an even grey.

Things on a slide, a table or a sky differ from what lies around them, whatever the lamp and the stain. The background
is estimated from the picture alone, taken away, and the rest is scaled so that what is clearly not background differs
from the grey by a fixed amount. So a dark, a pale and an unevenly lit picture come alike before the network, and one
threshold between background and things serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.data.dataset import UInt8Array
from tusk.data.tones import to_full_contrast

FloatArray = npt.NDArray[np.float32]

GREY = 128  # the background of a corrected picture, in all channels
LEVEL = GREY / 255
# A root-mean-square difference of the channels from the grey, of 1: half-way between background and thing.
THRESHOLD = 0.1

_SMALL = 128  # the background is estimated at this longest side: it is smooth
_MEASURED = 512  # thresholds are measured at this longest side
_BINS = 24  # of the histogram of colours, for each channel
_ROUNDS = 6
_REACH = 1 / 6  # of the shorter side: over this distance the background may change
_LEAST_NOISE, _NOISE_TIMES = 0.02, 2.5
_OTSU_SHARE = 0.7  # Otsu's threshold lies mid-way between the two means; pale rims belong to things
_LEAST_THRESHOLD = 0.02


@dataclass(frozen=True, eq=False)
class FlatField:
    """What a picture's correction is made of."""

    background: FloatArray  # (h, w, 3) in [0, 1], small: to be enlarged to the picture's size
    noise: float  # root-mean-square difference of background pixels from it
    threshold: float  # above this difference a pixel is taken for a thing
    cover: float  # share of the pixels above the threshold

    def apply(self, pixels: UInt8Array) -> UInt8Array:
        """(H, W, 3) -> the same with an even background of `GREY`; differences keep their hue and sign."""
        height, width = pixels.shape[:2]
        factor = THRESHOLD / self.threshold
        result = np.empty_like(pixels)
        for channel in range(3):  # one at a time: a picture may be large
            behind = np.asarray(
                Image.fromarray(self.background[:, :, channel]).resize((width, height), Image.Resampling.BILINEAR)
            )
            values = (pixels[:, :, channel].astype(np.float32) - 255 * behind) * factor + GREY
            result[:, :, channel] = np.clip(np.rint(values), 0, 255).astype(np.uint8)
        return result


def flatten_background(pixels: UInt8Array) -> UInt8Array:
    """(H, W, 3) -> its flat-field correction, at full contrast."""
    stretched = to_full_contrast(pixels)
    return measure_background(stretched).apply(stretched)


def measure_background(pixels: UInt8Array) -> FlatField:
    """(H, W, 3), at full contrast -> its background, noise and threshold.

    The background's colour is the most frequent one; from there it may change smoothly over the picture: the mean of
    the pixels that are near it, weighted by how near they are, over a sixth of the picture, a few times over.
    """
    from scipy import ndimage  # takes long to load, and not every picture is corrected

    # As two steps of averaging: what is measured does not depend on how many pixels the picture has.
    measured = _reduced(pixels, _MEASURED)
    small = ndimage.uniform_filter(_reduced(pixels, _SMALL), (3, 3, 1))
    flat = small.reshape(-1, 3)
    colour = _most_frequent(flat)
    behind = np.broadcast_to(colour, small.shape)
    reach = _REACH * min(small.shape[:2])
    noise = _LEAST_NOISE
    for _ in range(_ROUNDS):
        square = ((small - behind) ** 2).mean(2)
        nearest = square[square <= np.quantile(square, 0.25)]
        noise = max(_NOISE_TIMES * float(np.sqrt(nearest).mean()), _LEAST_NOISE)
        weight = np.exp(-square / (2 * noise**2))
        blurred = ndimage.gaussian_filter(small * weight[..., None], (reach, reach, 0), mode="nearest")
        total = ndimage.gaussian_filter(weight, reach, mode="nearest")[..., None]
        behind = (blurred + 1e-3 * colour) / (total + 1e-3)  # far from any background, its usual colour
    background = behind.astype(np.float32)
    smooth = ndimage.gaussian_filter(measured, (0.7, 0.7, 0))
    difference = np.sqrt(((smooth - _enlarged(background, measured.shape[1], measured.shape[0])) ** 2).mean(2))
    threshold = max(_OTSU_SHARE * otsu_threshold(difference), 2 * noise, _LEAST_THRESHOLD)
    return FlatField(background, noise, threshold, float((difference > threshold).mean()))


def otsu_threshold(values: npt.NDArray[np.floating]) -> float:
    """The threshold that parts the values into two groups with the least variance within them (Otsu 1979)."""
    counts, edges = np.histogram(values, 256)
    middles = (edges[1:] + edges[:-1]) / 2
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * middles)
    mean_below = sums / np.maximum(below, 1)
    mean_above = (sums[-1] - sums) / np.maximum(above, 1)
    return float(middles[(below * above * (mean_below - mean_above) ** 2).argmax()])


def _most_frequent(colours: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """(N, 3) in [0, 1] -> (3,): the mean of those around the highest place of their histogram."""
    from scipy import ndimage

    cells = np.clip((colours * _BINS).astype(np.int64), 0, _BINS - 1)
    counts = np.bincount(np.ravel_multi_index(tuple(cells.T), (_BINS,) * 3), minlength=_BINS**3)
    smooth = ndimage.gaussian_filter(counts.reshape((_BINS,) * 3).astype(np.float64), 0.7)
    middle = (np.array(np.unravel_index(smooth.argmax(), smooth.shape)) + 0.5) / _BINS
    near = np.abs(colours - middle).max(1) < 2 / _BINS
    return np.asarray(colours[near].mean(0) if near.any() else middle)


def _reduced(pixels: UInt8Array, side: int) -> FloatArray:
    """(H, W, 3) bytes -> (h, w, 3) in [0, 1], of that longest side at the most."""
    height, width = pixels.shape[:2]
    factor = min(1.0, side / max(height, width))
    size = max(1, round(width * factor)), max(1, round(height * factor))
    reduced = Image.fromarray(pixels).resize(size, Image.Resampling.BOX) if factor < 1 else pixels
    return np.asarray(reduced, np.float32) / np.float32(255)


def _enlarged(values: FloatArray, width: int, height: int) -> FloatArray:
    channels = [
        np.asarray(Image.fromarray(values[:, :, channel]).resize((width, height), Image.Resampling.BILINEAR))
        for channel in range(values.shape[2])
    ]
    return np.stack(channels, 2)
