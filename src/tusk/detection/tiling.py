"""A large picture in tiles: overlapping squares of the size that the network was trained on, and their results in one.

The network's norms and its count of keypoints are those of a tile; a whole picture at once would be out of its
distribution, and decoding it for every keypoint would take time that grows with the square of the picture's area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from tusk.data.dataset import UInt8Array
from tusk.data.framing import FittedPicture
from tusk.detection.detections import BoolArray, Detections, FloatArray, Int64Array, UInt16Array


@dataclass(frozen=True)
class Span:
    """One direction of a tile: where it starts, and the part that is its own; neighbours' parts meet."""

    start: int
    own: tuple[int, int]  # from the first pixel to before the last

    @property
    def inside(self) -> slice:
        """The own part, in the tile's pixels."""
        return slice(self.own[0] - self.start, self.own[1] - self.start)


@dataclass(frozen=True)
class Tile:
    """One tile of a picture."""

    across: Span
    down: Span

    def of(self, pixels: UInt8Array, size: tuple[int, int]) -> UInt8Array:
        """pixels (H, W, 3) of the picture -> (height, width, 3) of that size."""
        top, left = self.down.start, self.across.start
        return pixels[top : top + size[0], left : left + size[1]]

    def owns(self, xy: FloatArray, apart: float) -> BoolArray:
        """xy (N, 2) in the tile's pixels -> (N,) bool: whether they lie in its own part, or just beyond.

        Two tiles locate an object at their border a little differently, and each might take it for the other's.
        """
        margin = apart / 4
        # Pixel centres are at whole numbers.
        low = np.array([self.across.inside.start, self.down.inside.start]) - 0.5 - margin
        high = np.array([self.across.inside.stop, self.down.inside.stop]) - 0.5 + margin
        return np.asarray(((xy >= low) & (xy < high)).all(1))


def cut_tiles(height: int, width: int, size: tuple[int, int]) -> list[Tile]:
    """Tiles of that height and width that cover a picture, no side of which is below it, and overlap by half or more:
    an object at the edge of a tile's own part is still wholly inside the tile."""
    across, down = _spans(width, size[1]), _spans(height, size[0])
    return [Tile(column, row) for row in down for column in across]


def _spans(side: int, size: int) -> list[Span]:
    number = 1 + -(-(side - size) // (size // 2))
    starts = [round(place * (side - size) / max(1, number - 1)) for place in range(number)]
    # Midway between the middles of two tiles.
    edges = [0, *((first + second + size) // 2 for first, second in pairwise(starts)), side]
    return [Span(start, own) for start, own in zip(starts, pairwise(edges), strict=True)]


def join(
    found_in_tiles: Sequence[Detections], tiles: Sequence[Tile], height: int, width: int, apart: float, most: int
) -> Detections:
    """What was found in each tile, in its pixels -> what is in the picture, in the picture's, best score first.

    What two tiles both own, closer than `apart`, is one object: that of the larger gain. Of more than `most`
    the largest gains stay; the picture is then at its limit, as it is where one of its tiles was.
    """
    offsets = [np.array([tile.across.start, tile.down.start], np.float64) for tile in tiles]
    moved = [
        replace(found_in_tile, xy=found_in_tile.xy + offset)
        for found_in_tile, offset in zip(found_in_tiles, offsets, strict=True)
    ]
    own = [
        there[tile.owns(found_in_tile.xy, apart)]
        for there, found_in_tile, tile in zip(moved, found_in_tiles, tiles, strict=True)
    ]
    every = _together(own, height, width)
    every = every[np.argsort(-every.gain, kind="stable")]
    every = every[_first_of_each(every.xy, apart)]
    at_limit = len(every) >= most or any(found_in_tile.at_limit for found_in_tile in found_in_tiles)
    every = replace(every[:most], limit=most, at_limit=at_limit, tiled=True)
    every = every[np.argsort(-every.score, kind="stable")]
    every = replace(every, instance=np.arange(len(every)))
    if any(found_in_tile.mask_map is None for found_in_tile in found_in_tiles):
        return every
    return replace(every, mask_map=_mask_map(moved, tiles, every, apart))


def _together(found_in_tiles: Sequence[Detections], height: int, width: int) -> Detections:
    def joined(name: str) -> Any:
        return np.concatenate([getattr(found_in_tile, name) for found_in_tile in found_in_tiles])

    return Detections(
        source=found_in_tiles[0].source,
        width=width,
        height=height,
        xy=joined("xy"),
        type=joined("type"),
        score=joined("score"),
        gain=joined("gain"),
        probability=joined("probability"),
        descriptor=joined("descriptor"),
        instance=joined("instance"),
        size=None if found_in_tiles[0].size is None else joined("size"),
    )


def _first_of_each(xy: FloatArray, apart: float) -> Int64Array:
    """Which of the points (N, 2) have none before them, itself kept, closer than `apart`."""
    kept = np.ones(len(xy), np.bool_)
    if len(xy):
        close = cKDTree(xy).query_pairs(np.nextafter(apart, 0), output_type="ndarray")  # (n, 2), first < second
        for first, second in close[np.lexsort((close[:, 1], close[:, 0]))]:
            if kept[first]:
                kept[second] = False
    return np.flatnonzero(kept)


def _mask_map(
    found_in_tiles: Sequence[Detections], tiles: Sequence[Tile], every: Detections, apart: float
) -> UInt16Array:
    """(height, width): a tile's own part says which of its points each pixel belongs to, and the nearest of the joined
    ones is the same object; where none is near, it is background."""
    result = np.zeros((every.height, every.width), np.uint16)
    if not len(every):
        return result
    tree = cKDTree(every.xy)
    for found_in_tile, tile in zip(found_in_tiles, tiles, strict=True):
        assert found_in_tile.mask_map is not None
        numbers = np.zeros(1 + int(found_in_tile.instance.max(initial=0)) + 1, np.uint16)
        distance, nearest = tree.query(found_in_tile.xy) if len(found_in_tile) else (np.zeros(0), np.zeros(0, np.int64))
        numbers[1 + found_in_tile.instance] = np.where(distance < apart, 1 + nearest, 0)
        rows, columns = slice(*tile.down.own), slice(*tile.across.own)
        result[rows, columns] = numbers[found_in_tile.mask_map[tile.down.inside, tile.across.inside]]
    return result


def in_original(found: Detections, picture: FittedPicture) -> Detections:
    """From the pixels of the picture's frame to its own; points in the bars around it are left out."""
    placement, width, height = picture.frame.placement, picture.original_width, picture.original_height
    xy, inside = picture.to_original(found.xy)
    masks = None
    if found.mask_map is not None:
        columns = placement.to_network(np.stack([np.arange(width), np.zeros(width)], 1))[:, 0]
        rows = placement.to_network(np.stack([np.zeros(height), np.arange(height)], 1))[:, 1]
        masks = found.mask_map[_nearest(rows, found.height)][:, _nearest(columns, found.width)]
        masks[~np.isin(masks, 1 + found.instance[inside])] = 0
    size = None if found.size is None else found.size * max(placement.scale)
    return replace(found, width=width, height=height, xy=xy, mask_map=masks, size=size)[inside]


def _nearest(places: FloatArray, side: int) -> Int64Array:
    return np.clip(np.rint(places).astype(np.int64), 0, side - 1)
