"""What stands behind the people: plain walls, gradients, soft blobs, stripes, things out of focus."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.faces.person import Colour, mix

BACKDROPS = ("plain", "gradient", "blobs", "stripes", "shapes")
COARSE = 48  # everything is out of focus, so a small picture, enlarged, is enough


def _colour(rng: np.random.Generator) -> Colour:
    grey = rng.uniform(15, 225)
    red, green, blue = grey + rng.uniform(0, 0.6) * (rng.uniform(5, 245, 3) - grey)
    return float(red), float(green), float(blue)


def _whole(colour: Colour) -> tuple[int, int, int]:
    return int(colour[0]), int(colour[1]), int(colour[2])


def draw_backdrop(rng: np.random.Generator, side: int) -> Float32Array:
    """(side, side, 3), values 0..255."""
    kind = BACKDROPS[min(int(rng.integers(len(BACKDROPS) + 1)), len(BACKDROPS) - 1)]  # the last one twice as often
    first, second = _colour(rng), _colour(rng)
    second = mix(first, second, rng.uniform(0.3, 1.0))
    if kind == "plain":
        small = _gradient(rng, first, mix(first, second, 0.12))
    elif kind == "gradient":
        small = _gradient(rng, first, second)
    elif kind == "blobs":
        cells = int(rng.integers(3, 8))
        shares = rng.random((cells, cells, 1)) + 0.25 * (rng.random((cells, cells, 3)) - 0.5)
        values = np.array(first) + shares * (np.array(second) - np.array(first))
        small = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    else:
        small = _gradient(rng, first, mix(first, second, 0.2))
        draw = ImageDraw.Draw(small)
        if kind == "stripes":
            _stripes(rng, draw, second)
        else:
            for _ in range(int(rng.integers(6, 26))):
                _thing(rng, draw, mix(_colour(rng), second, rng.uniform(0, 0.8)))
        small = small.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.6, 2.2))))
    return np.asarray(small.resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32)


def _gradient(rng: np.random.Generator, first: Colour, second: Colour) -> Image.Image:
    across, along = rng.uniform(-1, 1, 2)
    steps = np.arange(COARSE) / (COARSE - 1) - 0.5
    share = np.clip(0.5 + across * steps[None, :] + along * steps[:, None], 0, 1)[:, :, None]
    values = np.array(first) + share * (np.array(second) - np.array(first))
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def _stripes(rng: np.random.Generator, draw: ImageDraw.ImageDraw, colour: Colour) -> None:
    lean = rng.uniform(-0.5, 0.5) * COARSE
    upright = bool(rng.random() < 0.6)
    period = rng.uniform(5, 16)
    share = rng.uniform(0.25, 0.6)
    at = -COARSE + rng.uniform(0, period)
    while at < 2 * COARSE:
        edge = [(at, -1), (at + period * share, -1), (at + lean + period * share, COARSE), (at + lean, COARSE)]
        draw.polygon(edge if upright else [(y, x) for x, y in edge], fill=_whole(colour))
        at += period


def _thing(rng: np.random.Generator, draw: ImageDraw.ImageDraw, colour: Colour) -> None:
    x, y = rng.uniform(0, COARSE, 2)
    wide, high = rng.uniform(1.5, 5) * rng.uniform(0.5, 3, 2)
    box = (x - wide, y - high, x + wide, y + high)
    if rng.random() < 0.5:
        draw.ellipse((x - wide, y - wide, x + wide, y + wide), fill=_whole(colour))
    else:
        draw.rectangle(box, fill=_whole(colour))
