"""What is to be evaluated on, and whether it can be: all that is known before torch is loaded and data opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tusk.data.catalogue import CATALOGUE
from tusk.errors import UsageError, nearest
from tusk.evaluation.paper import TASKS, Task


@dataclass(frozen=True)
class Asked:
    """What is to be evaluated on."""

    data: str
    source: str | None = None
    training: str | None = None  # source of the training images, where the other source has none
    split: str | None = None
    count: int | None = None
    keypoints: int | None = None
    seed: int = 0
    batch: int = 50

    @property
    def packed(self) -> bool:
        return self.source is not None and Path(self.source).suffix in (".h5", ".hdf5")

    @property
    def whole(self) -> bool:
        """The source is one split as it stands: a packed file, or CLEVR's scenes of more than six objects."""
        return self.packed or (self.data == "clevr10" and self.source is not None)

    @property
    def split_name(self) -> str:
        """For people."""
        return Path(str(self.source)).name if self.whole else self.split or "test"


def check(asked: Asked) -> Task:
    """How the dataset is scored; refuses what cannot be asked for before anything is opened."""
    if asked.data not in TASKS:
        if asked.data in CATALOGUE:
            raise UsageError(
                f"dataset '{asked.data}'", "nothing is known of what is in its images", f"use {', '.join(TASKS)}"
            )
        raise UsageError(f"dataset '{asked.data}'", "there is no such dataset", nearest(asked.data, TASKS))
    for flag, value in (("--count", asked.count), ("--keypoints", asked.keypoints), ("--batch", asked.batch)):
        if value is not None and value < 1:
            raise UsageError(flag, f"{value} is not possible", "give at least 1")
    if asked.seed < 0:
        raise UsageError("--seed", f"{asked.seed} is negative", "give 0 or more")
    if asked.whole and asked.split is not None:
        raise UsageError("--split", f"{asked.source} is one split as it stands", "leave --split out")
    task = TASKS[asked.data]
    if task.measure == "digits" and asked.training is not None:
        raise UsageError("--training", "nothing is fitted for this dataset's measure", "leave it out")
    if task.measure in ("faces", "people") and asked.split in ("train", task.fit_split):
        why = f"the landmarks are fitted on training images, so '{asked.split}' cannot score them too"
        raise UsageError("--split", why, "use 'test'")
    return task
