"""Small pictures for tests that need a folder of them."""

from collections.abc import Sequence
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


def disc_mask(height: int, width: int, *discs: tuple[float, float, float]) -> np.ndarray:
    """(height, width) float32 in [0, 1]: 1 within one of the discs (x, y, radius); edges are smooth."""
    y, x = np.mgrid[:height, :width]
    covered = np.zeros((height, width), np.float32)
    for left, top, radius in discs:
        covered = np.maximum(covered, np.clip(radius + 0.5 - np.hypot(x - left, y - top), 0, 1))
    return covered.astype(np.float32)


def apart(
    rng: np.random.Generator, height: int, width: int, radii: Sequence[float]
) -> list[tuple[float, float, float]]:
    """Discs (x, y, radius) of these radii that do not touch each other, nor the edge."""
    discs: list[tuple[float, float, float]] = []
    for radius in radii:
        while True:
            x, y = rng.uniform(radius + 2, width - radius - 2), rng.uniform(radius + 2, height - radius - 2)
            if all(np.hypot(x - a, y - b) > radius + other + 3 for a, b, other in discs):
                break
        discs.append((x, y, radius))
    return discs


def draw_discs(
    height: int,
    width: int,
    discs: Sequence[tuple[float, float, float]],
    colours: Sequence[tuple[int, int, int]] = ((60, 40, 90),),
    *,
    base: tuple[int, int, int] = (210, 205, 200),
    gradient: tuple[float, float] = (0.0, 0.0),
) -> np.ndarray:
    """(height, width, 3) bytes: discs in these colours, in turn, on a background that changes across and down."""
    y, x = np.mgrid[:height, :width]
    pixels = np.array(base) + (gradient[0] * x / width + gradient[1] * y / height)[..., None]
    for number, disc in enumerate(discs):
        share = disc_mask(height, width, disc)[..., None]
        pixels = (1 - share) * pixels + share * np.array(colours[number % len(colours)])
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
