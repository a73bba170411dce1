"""Pixels of any kind as RGB bytes: deep grey, floats, palettes, inks and transparency.

Every rule depends on the one picture alone, so that a picture gives the same bytes in whatever company it is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.data.dataset import UInt8Array

# Shares of a picture's values that full contrast cuts off, and the least difference that it makes black and white of.
_DARKEST, _BRIGHTEST, _LEAST_CONTRAST = 0.005, 0.002, 16


def to_rgb(image: Image.Image) -> UInt8Array:
    """(H, W, 3) of a picture that Pillow has decoded.

    Transparent pixels lie on black. The colour stored under full transparency is whatever the writing program left,
    so it cannot be kept; black is what the letterbox pads with and what pictures with a removed background lie on.
    """
    if image.mode == "F" or image.mode.startswith("I"):
        return np.repeat(to_eight_bits(np.asarray(image))[:, :, None], 3, axis=2)
    if image.has_transparency_data:
        # Colours multiplied by their alpha are the picture laid on black.
        return np.asarray(image.convert("RGBA").convert("RGBa"))[:, :, :3]
    return np.asarray(image.convert("RGB"))


def to_full_contrast(pixels: UInt8Array) -> UInt8Array:
    """(H, W, 3) with its darkest pixels black and its brightest white; all channels alike, so that hues stay.

    A few pixels beyond either end are cut off: dust and dead pixels are no measure of brightness. A picture with hardly
    any contrast is not stretched until its noise is as strong as things.
    """
    counts = np.bincount(pixels.ravel(), minlength=256).cumsum()
    low = int(np.searchsorted(counts, _DARKEST * counts[-1], side="right"))
    high = int(np.searchsorted(counts, (1 - _BRIGHTEST) * counts[-1]))
    table = np.rint(np.clip((np.arange(256) - low) / max(high - low, _LEAST_CONTRAST), 0, 1) * 255)
    return np.asarray(table.astype(np.uint8)[pixels])


def to_eight_bits(values: npt.NDArray[Any]) -> UInt8Array:
    """Grey values of more than 8 bits, or floats, as bytes.

    White is the largest number that the camera could have given: 2^b - 1 for the smallest b among 8, 10, 12, 14 and 16
    that holds the brightest pixel. A full 16-bit picture is thus divided by 257, while 12-bit data in a 16-bit file, as
    microscopes and X-ray detectors write them, do not turn out black. Wide steps, instead of stretching each picture to
    its own brightest pixel, keep one series of exposures at one brightness. Floats within 0..1 are fractions of white.
    What fits neither (negative numbers, more than 16 bits) has no natural white and is stretched from its lowest to its
    highest value. NaN becomes black.
    """
    floats = values.dtype.kind == "f"
    finite = values[np.isfinite(values)] if floats else values
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low < 0 or high > 65535:
        white = max(high - low, np.finfo(np.float64).tiny)
    elif floats and high <= 1:
        low, white = 0.0, 1.0
    else:
        low, white = 0.0, float(next(2**bits - 1 for bits in (8, 10, 12, 14, 16) if high <= 2**bits - 1))
        if not floats:
            table = np.rint(np.minimum(np.arange(65536) / white, 1) * 255)
            return np.asarray(table.astype(np.uint8)[values])
    scaled = values.astype(np.float64)
    scaled -= low
    scaled /= white
    np.nan_to_num(scaled, copy=False, nan=0.0, posinf=1.0, neginf=0.0)
    return np.rint(np.clip(scaled, 0, 1, out=scaled) * 255).astype(np.uint8)
