"""Small pictures for tests that need a folder of them."""

from pathlib import Path

import numpy as np
from PIL import Image


def save_squares(folder: Path, count: int) -> None:
    """`count` black pictures of 32 x 32 pixels with three coloured squares each, the same every time."""
    rng = np.random.default_rng(0)
    for number in range(count):
        image = np.zeros((32, 32, 3), np.uint8)
        for x, y in rng.integers(2, 26, (3, 2)):
            image[y : y + 4, x : x + 4] = rng.integers(100, 255, 3)
        Image.fromarray(image).save(folder / f"{number}.png")
