"""A named or packed dataset at the network's size: images and truth through the same placement as pictures in use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from PIL import Image

from tusk.data.dataset import Dataset, Float32Array, Truth, UInt8Array
from tusk.data.framing.frame import Framing, in_three, laid_out
from tusk.data.framing.placement import Placement
from tusk.data.images import Picture, image_size, read_picture
from tusk.errors import UsageError


@runtime_checkable
class OfFiles(Protocol):
    """A dataset whose images are picture files as they are: read here as `tusk detect` reads them."""

    def picture_file(self, index: int) -> Path: ...


@runtime_checkable
class OfPictures(Protocol):
    """A dataset whose images are pictures that can be decoded at a smaller size."""

    def picture(self, index: int, smallest_side: int | None) -> Picture: ...


class Framed:
    """Every image of a dataset as (size, size, 3); the truth moves along.

    A random crop is drawn from the seed and the index. A point that a crop cuts off becomes NaN, as one that is not
    visible. Images that would give several tiles, or that are to be padded and do not fit, are refused.
    """

    def __init__(self, dataset: Dataset, framing: Framing, seed: int = 0) -> None:
        self.original, self.framing, self.seed = dataset, framing, seed
        # Asked once: to compare a dataset with a protocol takes as long as to decode a thumbnail.
        self._of_files = dataset if isinstance(dataset, OfFiles) else None
        self._of_pictures = dataset if isinstance(dataset, OfPictures) else None
        self._placed: tuple[tuple[int, int], Placement] | None = None  # of the last size, where chance has no say
        self._last = -1, (0, 0)  # an image, its width and height: mostly its truth is asked for next

    @property
    def name(self) -> str:
        return self.original.name

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.original.class_names

    def __len__(self) -> int:
        return len(self.original)

    def image(self, index: int) -> UInt8Array:
        if self._of_files is not None:
            picture = read_picture(self._of_files.picture_file(index), smallest_side=self.framing.smallest_side)
        elif self._of_pictures is not None:
            picture = self._of_pictures.picture(index, self.framing.smallest_side)
        else:
            pixels = self.original.image(index)
            picture = Picture(pixels, pixels.shape[1], pixels.shape[0])
        width, height = picture.original_width, picture.original_height
        self._last = index, (width, height)
        placement = self.placement(index, width, height)
        if self.framing.fit == "pad" and placement.columns < width:
            raise UsageError(
                "data.size",
                f"images of {width}x{height} do not fit in {self.framing.size} pixels without scaling",
                f"give at least {max(width, height)}, or another data.fit",
            )
        (image,) = self.framing.render(picture, [placement])
        return in_three(image)

    def truth(self, index: int) -> Truth | None:
        truth = self.original.truth(index)
        if truth is None:
            return None
        width, height = self._size(index, truth.mask)
        return moved_truth(truth, self.placement(index, width, height), width, height, self.framing.size)

    def placement(self, index: int, width: int, height: int) -> Placement:
        """Where image `index`, of that size, lies in the square."""
        if self._placed is not None and self._placed[0] == (width, height):
            return self._placed[1]
        placements = self.framing.places(width, height, np.random.default_rng((self.seed, index % len(self))))
        if len(placements) > 1:
            why = f"{len(placements)} tiles of {self.framing.size} pixels would come out of {width}x{height}"
            raise UsageError("data.fit", f"{why}, but its truth cannot be cut", "use tiles with a folder of pictures")
        if self.framing.fit != "random-crop":
            self._placed = (width, height), placements[0]
        return placements[0]

    def _size(self, index: int, mask: UInt8Array | None) -> tuple[int, int]:
        """(width, height) of an image, without making or decoding it again where that can be had."""
        if mask is not None:
            return mask.shape[1], mask.shape[0]
        last, size = self._last
        if last == index:
            return size
        if self._of_files is not None:
            return image_size(self._of_files.picture_file(index))
        height, width = self.original.image(index).shape[:2]
        return width, height


def moved_truth(truth: Truth, placement: Placement, width: int, height: int, size: int) -> Truth:
    """The truth about a picture of width x height -> about its square image."""
    boxes = None if truth.boxes is None else placement.to_network(truth.boxes.reshape(-1, 2, 2)).reshape(-1, 4)
    return replace(
        truth,
        points=None if truth.points is None else _moved(truth.points, placement, width, height),
        boxes=None if boxes is None else boxes.astype(np.float32),
        mask=None if truth.mask is None else _mask(truth.mask, placement, size),
    )


def _mask(mask: UInt8Array, at: Placement, size: int) -> UInt8Array:
    """By the nearest pixel: numbers of things must not be mixed."""
    box = (at.left, at.top, at.left + at.width, at.top + at.height)
    values = Image.fromarray(mask).resize((at.columns, at.rows), Image.Resampling.NEAREST, box=box)
    return laid_out(np.asarray(values), at, (size, size))


def _moved(points: Float32Array, placement: Placement, width: int, height: int) -> Float32Array:
    """Landmarks may lie beyond the picture's own edge, and stay there; what the crop took away is gone."""
    corner = points + 0.5
    in_picture = ((corner >= 0) & (corner < (width, height))).all(1)
    left, top = placement.left, placement.top
    in_crop = ((corner >= (left, top)) & (corner < (left + placement.width, top + placement.height))).all(1)
    moved = placement.to_network(points)
    moved[in_picture & ~in_crop] = np.nan
    return moved.astype(np.float32)
