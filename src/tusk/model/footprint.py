"""How many numbers the network holds: its weights, and what each layer keeps until its gradient has been computed.

Counted from the structure of `unet.py`, `encoder.py` and `decoder.py`; what torch's own kernels take besides is fitted
to measurements by those who use this (`training/footprint.py`, `detection/footprint.py`).
"""

from __future__ import annotations

from itertools import pairwise

from tusk.config import ModelConfig

_DRAWN = 25_600  # values of the layers that draw one canvas, see `canvas.py`
_PLACED = 17  # maps for each canvas where it is placed: its grid, its colours and weight, and their products

# Of the small network that draws canvases: its convolutions, and its first linear map.
_CANVAS_WEIGHTS, _CANVAS_WEIGHTS_PER_CHANNEL = 24_700, 1_027


def weight_count(config: ModelConfig) -> int:
    """Of the U-Nets of encoder and decoder: all others are few beside them."""
    encoder = _unet_weights(3 * config.stride**2, config.width, config.levels)
    if config.sizes is not None:
        return encoder + _CANVAS_WEIGHTS + _CANVAS_WEIGHTS_PER_CHANNEL * config.channels
    return encoder + _unet_weights(config.channels, config.width, config.levels)


def encoder_values(config: ModelConfig, size: int) -> float:
    """What the encoder keeps of one image of size x size pixels for its gradient."""
    pixels = map_pixels(config, size)
    outer = 3 * config.stride**2 + config.channels
    padded = config.padding == "replicate"  # then every convolution's input is there twice
    head = (5 if padded else 3) * config.channels
    return pixels * (unet_values(config, padded=padded) + outer + head)


def decoder_values(config: ModelConfig, size: int, keypoints: int) -> float:
    """What the decoder keeps of one image for its gradient."""
    image = 20 * config.stride**2 * map_pixels(config, size)  # reconstruction and blending
    if config.sizes is not None:
        return image + keypoints * (_DRAWN + _PLACED * map_pixels(config, size))
    outer = config.channels + 4 * config.stride**2
    if config.decode == "plain":
        return image + map_pixels(config, size) * (unet_values(config) + outer)
    blending = 10 * config.stride**2
    return image + keypoints * layer_pixels(config, size) * (unet_values(config) + outer + blending)


def unet_values(config: ModelConfig, *, padded: bool = False) -> float:
    """For each pixel of the map that a U-Net runs on."""
    values = 0.0
    for level in range(config.levels):
        here = config.width / 2**level  # channels times pixels
        values += 4 * here + padded * 1.5 * here  # two convolutions, each with its norm
        if level < config.levels - 1:
            values += 0.75 * here + 7 * here + padded * 4 * here  # pooling; and on the way up, with the skip
    return values


def map_pixels(config: ModelConfig, size: int) -> int:
    """Of the map that the U-Nets run on."""
    side = -(-size // config.multiple) * config.multiple // config.stride
    return side * side


def layer_pixels(config: ModelConfig, size: int) -> int:
    """Of the map that one layer is decoded on."""
    whole = map_pixels(config, size)
    return whole if config.layer_window is None else min(whole, (config.layer_window // config.stride) ** 2)


def _unet_weights(inputs: int, width: int, levels: int) -> int:
    widths = [width << level for level in range(levels)]
    down = sum(9 * (before + here) * here for before, here in zip([inputs, *widths], widths, strict=False))
    up = sum(9 * (below + 2 * here) * here for here, below in pairwise(widths))
    return down + up
