"""Which images, and how they come to the network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tusk.config.base import Part

Fit = Literal["letterbox", "centre-crop", "random-crop", "pad", "tiles"]
Contrast = Literal["own", "full"]


class DataConfig(Part):
    """Which images, and how they come to the network's size: the same for all datasets, in training and in use."""

    dataset: str = "folder"
    """A dataset that tusk knows by name, or `folder` for your own pictures."""
    source: Path | None = None
    """Folder, file, glob or list that the images come from; not needed where tusk makes them."""
    size: Annotated[int, Field(ge=8, le=4096)] = 80
    """Side in pixels of the square images that the network sees."""
    fit: Fit = "centre-crop"
    """How an image comes to that size. `centre-crop`: its largest square, scaled; `random-crop`: such a square
    anywhere; in use the rest of the picture is kept, at the same scale. `letterbox`: all of it, scaled, with black
    bars. `pad`: unscaled, in the middle of a black square; a picture of your own that is larger is letterboxed.
    `tiles` cuts a large picture of your own, unscaled, into squares: `model.keypoints` is then for one tile, and in use
    a picture is cut into tiles that overlap."""
    scale: Annotated[float, Field(gt=0, le=16)] = 1.0
    """Pictures are scaled by this before they are cut into tiles, so that things come to about `model.window`."""
    contrast: Contrast = "own"
    """Leave the brightness of a picture as it is, or make its darkest pixels black and its brightest white: pictures of
    unlike exposure then weigh alike in training, and their gains can be compared."""
    grey: bool = False
    """Throw the colours away."""
