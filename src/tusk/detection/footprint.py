"""What memory detection takes, estimated before it begins; fitted to measured peaks as in `training/footprint.py`."""

from __future__ import annotations

from tusk.config import ModelConfig
from tusk.model.footprint import layer_pixels, map_pixels, weight_count

FLOAT = 4  # bytes
BASE = 280 << 20  # Python, torch and its kernels, before any image
_ALIVE = 8  # maps of a U-Net's first level at its widest point, where nothing is kept for gradients
_ALIVE_PADDED = 12  # where every convolution's input is padded by a copy
_ALIVE_CANVAS = 4  # where layers are as large as the image: `compressed.py` keeps small canvases of them
_ALIVE_GAINS = 13  # where a plain decoder runs once more for each keypoint
_LAYER_MAPS = 30  # maps of the image's size for each layer: colours, shares, sums over the others
_SIZED_MAPS = 15  # the same where layers are canvases that are placed by size
_GAINS_AT_ONCE = 1 << 18  # image pixels, as in `gain.py`


def detection_bytes(config: ModelConfig, size: int, images: int, keypoints: int, views: int = 1) -> int:
    """The peak while so many images of size x size pixels go through the network together.

    views: of each image, that are encoded together, as in validation.
    """
    pixels = map_pixels(config, size)
    image = pixels * config.stride**2
    alive = _ALIVE_PADDED if config.padding == "replicate" else _ALIVE
    encoder = views * images * pixels * (alive * config.width + 4 * config.channels)
    if config.decode == "plain":
        maps = 20 * images * image
        decoder = max(images, _GAINS_AT_ONCE / image) * pixels * (_ALIVE_GAINS * config.width + 2 * config.channels)
    elif config.sizes is not None:
        maps, decoder = images * keypoints * image * _SIZED_MAPS, 0.0
    else:
        maps = images * keypoints * image * _LAYER_MAPS
        alive = _ALIVE_CANVAS if layer_pixels(config, size) == pixels else _ALIVE
        decoder = images * keypoints * layer_pixels(config, size) * (alive * config.width + 2 * config.channels)
    return BASE + int(FLOAT * (max(encoder, decoder) + maps + weight_count(config)))
