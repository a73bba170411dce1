"""What is to be evaluated on, and whether it can be: all that is known before torch is loaded and data opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tusk.config import DetectionConfig
from tusk.data.registry import DATASETS
from tusk.errors import UsageError, nearest
from tusk.evaluation.protocols import TASKS, Task


@dataclass(frozen=True)
class EvaluationRequest:
    """What is to be evaluated on."""

    data: str
    source: str | None = None
    training: str | None = None  # source of the training images for landmarks, where the other source has none
    split: str | None = None
    count: int | None = None
    keypoints: int | None = None
    seed: int = 0
    batch: int = 50
    min_score: float | None = None
    min_gain: float | None = None  # None: the model's own, as in `tusk detect`
    detection: DetectionConfig | None = None  # in place of the model's own settings

    @property
    def packed(self) -> bool:
        return self.source is not None and Path(self.source).suffix in (".h5", ".hdf5")

    @property
    def whole(self) -> bool:
        """The source is one split by itself: a packed file, or CLEVR's scenes of more than six objects."""
        return self.packed or (self.data == "clevr10" and self.source is not None)

    @property
    def split_name(self) -> str:
        """For people."""
        return Path(str(self.source)).name if self.whole else self.split or "test"


def check(request: EvaluationRequest) -> Task:
    """How the dataset is scored; refuses what cannot be asked for before anything is opened."""
    if request.data not in TASKS:
        if request.data in DATASETS:
            raise UsageError(
                f"dataset '{request.data}'", "nothing is known of what is in its images", f"use {', '.join(TASKS)}"
            )
        raise UsageError(f"dataset '{request.data}'", "there is no such dataset", nearest(request.data, TASKS))
    for flag, value in (("--count", request.count), ("--keypoints", request.keypoints), ("--batch", request.batch)):
        if value is not None and value < 1:
            raise UsageError(flag, f"{value} is not possible", "give at least 1")
    if request.seed < 0:
        raise UsageError("--seed", f"{request.seed} is negative", "give 0 or more")
    if request.whole and request.split is not None:
        raise UsageError("--split", f"{request.source} is one split by itself", "leave --split out")
    task = TASKS[request.data]
    if request.training is not None and not task.is_fitted:
        raise UsageError("--training", "nothing is fitted for this dataset's measure", "leave it out")
    if task.is_fitted and request.split in ("train", task.fit_split):
        why = f"the landmarks are fitted on training images, so '{request.split}' cannot score them too"
        raise UsageError("--split", why, "use 'test'")
    return task
