"""What a training will see, before it starts: how many pictures, how much of them, and how large a thing may be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tusk.config import Config
from tusk.data.dataset import Dataset
from tusk.data.folder import FolderDataset, skipped_table
from tusk.data.framing import Framed, Framing
from tusk.data.registry import open_dataset, request_for
from tusk.data.sources import Skipped
from tusk.io import atomic_write

FEW = 20  # pictures: with fewer, what is learnt is mostly about these very pictures

_LOOKED_AT = 4  # images of a dataset that is no folder of pictures: there they are mostly of one size
_ALIKE = 1.05  # scales that differ by less than this are said as one
_FITS = {
    "centre-crop": "the largest square in the middle of each picture",
    "random-crop": "one square of each picture, as large as its shorter side",
    "letterbox": "each picture as a whole, with black bars",
    "pad": "each picture as a whole, in a black square",
    "tiles": "each picture cut into tiles",
}


@dataclass(frozen=True)
class Range:
    """The middle, the least and the greatest of some numbers."""

    middle: float
    least: float
    greatest: float

    def words(self, places: int) -> str:
        middle, least, greatest = (f"{value:.{places}f}" for value in (self.middle, self.least, self.greatest))
        return middle if self.greatest < _ALIKE * self.least else f"{middle} ({least} to {greatest})"


@dataclass(frozen=True)
class Overview:
    """Pictures and images of a training."""

    config: Config
    name: str
    images: int  # that the network is given; with tiles, more than pictures
    pictures: int | None  # files, or their frames, that could be read; None where they are no files of the user's
    skipped: tuple[Skipped, ...]
    remarks: tuple[str, ...]  # what else was not read
    cropped: float  # mean share of a picture that is cut off
    scale: Range  # the network's pixels for each of the picture's

    @property
    def thing(self) -> Range:
        """How many of the picture's pixels the window covers: about the size of a thing that it expects."""
        window, scale = self.config.model.window, self.scale
        return Range(window / scale.middle, window / scale.greatest, window / scale.least)

    def lines(self, listed: Path | None = None) -> list[str]:
        """Three lines for people, and a warning where there is reason for one; `listed`: where the skipped are."""
        lines = [self._read(listed), self._framed(), self._expected()]
        if self.pictures is not None and self.pictures < FEW:
            number = "1 picture" if self.pictures == 1 else f"{self.pictures} pictures"
            tiles = f" (cut into {self.images:,} tiles)" if self.config.data.fit == "tiles" else ""
            lines.append(
                f"Warning: only {number}{tiles}: what is learnt may hold for these alone; give {FEW} or more, better "
                "hundreds"
            )
        return lines

    def _read(self, listed: Path | None) -> str:
        if self.pictures is None:
            return f"Images: {self.images:,} of {self.name}, none skipped"
        words = [f"Pictures: {self.pictures:,} read", "none skipped"]
        if self.skipped:
            reasons = Counter(one.reason.partition(" (")[0] for one in self.skipped)
            shown = [f"{reason}: {count}" for reason, count in reasons.most_common(3)]
            others = ["..."] if len(reasons) > 3 else []
            where = "" if listed is None else f", listed in {listed}"
            words[1] = f"{len(self.skipped):,} skipped ({', '.join([*shown, *others])}){where}"
        return "; ".join([*words, *self.remarks])

    def _framed(self) -> str:
        data = self.config.data
        words = f"Framing: {_FITS[data.fit]} ({data.fit}), {data.size}x{data.size} pixels"
        cut = "nothing is cropped away"
        if self.cropped > 0:
            share = "under 1%" if self.cropped < 0.01 else f"{self.cropped:.0%}"
            cut = f"{share} of the picture is cropped away (--data.fit letterbox or tiles keeps all)"
        return f"{words}; {cut}; scaled by {self.scale.words(2)}"

    def _expected(self) -> str:
        data, model = self.config.data, self.config.model
        what, each = (f"{data.size}-pixel tiles", " in each") if data.fit == "tiles" else ("images", "")
        counts = f"{self.images} {what} of {self.name}, {model.keypoints} keypoints{each}, {model.types} types"
        if model.sizes is not None:
            least, most = (size / self.scale.middle for size in model.sizes)
            return f"{counts}; things from {least:.0f} to {most:.0f} pixels across can be found (--thing-size)"
        size = f"about {self.thing.words(0)} pixels across in the picture"
        return f"{counts}; things are expected to be {size} (--model.window {model.window})"


def overview_of(config: Config, dataset: Dataset) -> Overview:
    """Of images that are open already."""
    framing = Framing.of(config.data)
    if isinstance(dataset, FolderDataset):
        sizes, pictures = dataset.sizes, dataset.pictures
        skipped, remarks = dataset.skipped_files, tuple(dataset.found.remarks())
    else:
        sizes, pictures, skipped, remarks = _sizes(dataset), None, (), ()
    cropped, scales = [], []
    for (width, height), count in sizes.items():
        placement = framing.places(width, height, np.random.default_rng(0))[0]
        tiled = config.data.fit == "tiles"
        share = 0.0 if tiled else 1 - placement.width * placement.height / (width * height)
        cropped += [share] * count
        scales += [1 / max(placement.scale)] * count
    return Overview(
        config=config,
        name=dataset.name,
        images=len(dataset),
        pictures=pictures,
        skipped=skipped,
        remarks=remarks,
        cropped=float(np.mean(cropped)),
        scale=Range(float(np.median(scales)), min(scales), max(scales)),
    )


def open_overview(config: Config) -> tuple[Dataset, Overview]:
    """Open the images of a training and describe them."""
    request = request_for(config.data, source=config.data.sources, split="train", seed=config.training.seed)
    dataset = open_dataset(config.data.dataset, request)
    return dataset, overview_of(config, dataset)


def write_skipped(overview: Overview, folder: Path) -> Path | None:
    """The list of what was skipped, beside the run; -> its path, None where nothing was."""
    path = folder / "skipped.csv"
    if not overview.skipped:
        path.unlink(missing_ok=True)  # of an earlier start of the same run
        return None
    atomic_write(path, skipped_table(overview.skipped))
    return path


def _sizes(dataset: Dataset) -> Counter[tuple[int, int]]:
    """Of the first images, before they are framed."""
    original = dataset.original if isinstance(dataset, Framed) else dataset
    shapes = (original.image(index).shape for index in range(min(_LOOKED_AT, len(dataset))))
    return Counter((shape[1], shape[0]) for shape in shapes)
