"""Which measure belongs to which dataset, and what the paper's tables say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Measure = Literal["digits", "objects", "faces", "people"]

_PAPER = "Jin et al., TUSK: Task-Agnostic Unsupervised Keypoints, NeurIPS 2022"
LANDMARK_ERROR = "landmark error"
ARI_FOREGROUND = "ARI, foreground"


@dataclass(frozen=True)
class PaperFigure:
    name: str  # as in our own table
    value: float  # in percent, all of them


@dataclass(frozen=True)
class Task:
    """How a dataset is scored."""

    measure: Measure
    paper_data: str  # the dataset of the paper's figures
    table: str  # the paper's table, by its caption
    paper: tuple[PaperFigure, ...]
    stand_in: bool = False  # other images than the paper's, which its figures are only a rough guide for
    fit_split: str = "train"  # landmarks are fitted on this split
    keypoints: int | None = None  # another K than the model's own

    @property
    def is_fitted(self) -> bool:
        """Whether the measure fits something on training images."""
        return self.measure in ("faces", "people")

    @property
    def source(self) -> str:
        return f"{_PAPER}, {self.table}, {self.paper_data}"


def _figures(**values: float) -> tuple[PaperFigure, ...]:
    names = {"ari": ARI_FOREGROUND, "landmarks": LANDMARK_ERROR}
    return tuple(PaperFigure(names.get(name, name), value) for name, value in values.items())


_DIGITS = _figures(localisation=99.9, classification=92.1, both=92.1)
_DIGITS_TABLE = "table 'Object detection on MNIST-Hard'"
_OBJECTS_TABLE = "table 'Quantitative results for CLEVR and Tetrominoes'"
_LANDMARKS_TABLE = "table 'Performance on CelebA-in-the-wild and Human3.6M'"
_FACES, _PEOPLE = _figures(landmarks=18.49), _figures(landmarks=6.88)

TASKS = {
    "mnist-hard": Task("digits", "MNIST-Hard", _DIGITS_TABLE, _DIGITS),
    "digits": Task("digits", "MNIST-Hard", _DIGITS_TABLE, _DIGITS, stand_in=True),
    "tetrominoes": Task("objects", "Tetrominoes", _OBJECTS_TABLE, _figures(ari=99.7, shape=91.3, color=100.0)),
    "clevr6": Task("objects", "CLEVR6", _OBJECTS_TABLE, _figures(ari=98.3, shape=46.8, color=90.7, size=97.1)),
    "clevr10": Task(
        "objects",
        "CLEVR10 with a model of CLEVR6",
        "table 'Quantitative results for CLEVR6 and CLEVR10'",
        _figures(ari=97.6, shape=52.5, color=90.7, size=97.9),
        keypoints=10,
    ),
    "celeba": Task("faces", "CelebA", _LANDMARKS_TABLE, _FACES, fit_split="mafl-train"),
    "mtfl": Task("faces", "CelebA", _LANDMARKS_TABLE, _FACES, stand_in=True),
    "faces": Task("faces", "CelebA", _LANDMARKS_TABLE, _FACES, stand_in=True),
    "h36m": Task("people", "H36M", _LANDMARKS_TABLE, _PEOPLE),
    "people": Task("people", "H36M", _LANDMARKS_TABLE, _PEOPLE, stand_in=True),
}

PROTOCOLS: dict[Measure, str] = {
    "digits": (
        "a box of 20x20 pixels (at 80x80) on each keypoint finds a digit whose box it overlaps by IoU >= 0.5, one to "
        "one; types are matched with digits one to one (many to one where there are more types than digits)"
    ),
    "objects": (
        "ARI over pixels that are foreground in the truth, mean over images; each type stands for the shape, colour "
        "and size that most of its matched objects have (many to one); one to one is Hungarian"
    ),
    "faces": (
        "one linear layer without bias from the points, by type and sorted by x, to the landmarks, fitted on training "
        "images; mean distance over the distance between the eyes"
    ),
    "people": (
        "one linear layer without bias from the points, by type and sorted by x, to the joints (left and right swapped "
        "where the person faces away), fitted on training images; mean distance over the image's side"
    ),
}
