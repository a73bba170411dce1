"""Which images, and how they come to the network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from tusk.config.base import Part
from tusk.names import as_url

Fit = Literal["letterbox", "centre-crop", "random-crop", "pad", "tiles"]
Contrast = Literal["own", "full", "flat"]
Frames = Literal["first", "all"]


class DataConfig(Part):
    """Which images, and how they come to the network's size: the same for all datasets, in training and in use."""

    dataset: str = "folder"
    """A dataset that tusk knows by name, or `folder` for your own pictures."""
    source: Path | tuple[Path, ...] | None = None
    """Folder, file, glob or list that the images come from, or several of them; not needed where tusk makes them."""
    frames: Frames = "first"
    """Of a TIFF or GIF with several frames, take the first, or each as a picture of its own."""
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
    unlike exposure then weigh alike in training, and their gains can be compared. `flat` is flat-field correction: the
    picture's own smooth background becomes an even grey, and what differs from it is brought to one strength."""
    grey: bool = False
    """Throw the colours away."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The source, or all of them where there are several; none where tusk makes the images."""
        many = self.source if isinstance(self.source, tuple) else () if self.source is None else (self.source,)
        return tuple(as_url(str(one)) or str(one) for one in many)

    @property
    def source_words(self) -> str:
        """The same for people: a thousand files by the first of them."""
        first, *others = self.sources or ("",)
        return f"{first} and {len(others)} more" if others else first

    @field_validator("source", mode="before")
    @classmethod
    def _paths(cls, value: Any) -> Any:
        """An empty text would be the current folder; a number or a date is what YAML makes of a bare 2024."""
        many = value if isinstance(value, list | tuple) else [value]
        if value is None:
            return None
        if not many or not all(isinstance(one, str | Path) for one in many):
            raise ValueError("it must be a path or a list of paths, each in quotes where it looks like a number")
        if not all(map(str, many)):
            raise ValueError("an empty text is no path")
        return many[0] if len(many) == 1 else tuple(many)
