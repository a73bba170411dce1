"""A contact sheet: the first images of a dataset, with their truth drawn in where there is any."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw

from tusk.data.dataset import Dataset, Truth
from tusk.detection.draw import enlarged, type_colours


def contact_sheet(dataset: Dataset, count: int = 24, *, columns: int = 8, truth: bool = True) -> Image.Image:
    """The first `count` images in rows of `columns`, each about 128 pixels wide, thin gaps between."""
    count = min(count, len(dataset))
    columns = min(columns, count)
    tiles = [_tile(dataset, index, truth) for index in range(count)]
    width, height = max(tile.width for tile in tiles), max(tile.height for tile in tiles)
    gap = 4
    rows = math.ceil(count / columns)
    sheet = Image.new("RGB", (columns * (width + gap) + gap, rows * (height + gap) + gap), (90, 90, 96))
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        sheet.paste(tile, (gap + column * (width + gap), gap + row * (height + gap)))
    return sheet


def _tile(dataset: Dataset, index: int, with_truth: bool) -> Image.Image:
    pixels = dataset.image(index)
    factor = max(1, round(128 / max(pixels.shape[:2])))
    tile = enlarged(pixels, factor)
    if max(tile.size) > 200:
        tile.thumbnail((160, 160))
        return tile
    truth = dataset.truth(index) if with_truth else None
    if truth is not None:
        _draw_truth(tile, truth, factor)
    return tile


def _draw_truth(tile: Image.Image, truth: Truth, factor: int) -> None:
    if truth.points is None:
        return
    draw = ImageDraw.Draw(tile)
    classes = truth.classes if truth.classes is not None else np.arange(len(truth.points))
    colours = type_colours(int(classes.max()) + 1 if len(classes) else 1)
    for (x, y), number in zip(truth.points, classes, strict=True):
        if math.isnan(x) or math.isnan(y):
            continue
        u, v = (float(x) + 0.5) * factor, (float(y) + 0.5) * factor
        draw.ellipse((u - 2, v - 2, u + 2, v + 2), fill=colours[int(number)], outline=(0, 0, 0))
