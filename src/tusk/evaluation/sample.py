"""Which images are scored, and which training images landmarks are fitted on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.config import DataConfig
from tusk.data.dataset import Dataset, Truth
from tusk.data.registry import DATASETS, open_dataset, request_for
from tusk.errors import DataError, UsageError
from tusk.evaluation.protocols import Task
from tusk.evaluation.request import EvaluationRequest

DEFAULT_COUNT = 2000
_STREAM = 0xE7A1  # keeps the choice of images apart from whatever else draws numbers from the seed
Progress = Callable[[str, int, int], None]  # what is being done, images done, images in all


@dataclass(frozen=True)
class Batch:
    images: Tensor  # (B, 3, H, W) in [0, 1]
    truths: tuple[Truth, ...]  # about each of them


@dataclass(frozen=True)
class Sample:
    """Some images of a dataset."""

    dataset: Dataset
    indices: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.indices)

    def batches(self, size: int, words: str, progress: Progress) -> Iterator[Batch]:
        """All images in order, `size` at a time, with the truth about them."""
        for start in range(0, len(self), size):
            pixels, truths = [], []
            for index in self.indices[start : start + size]:
                # One after the other: some datasets make an image and its truth together.
                pixels.append(self.dataset.image(int(index)))
                truths.append(self.truth(int(index)))
            images = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2)  # (B, 3, H, W)
            yield Batch(images.float() / 255, tuple(truths))
            progress(words, start + len(pixels), len(self))

    def truth(self, index: int) -> Truth:
        """The truth about an image of the dataset; one that does not know it is refused."""
        truth = self.dataset.truth(index)
        if truth is None:
            raise DataError(
                self.dataset.name, "there is no truth about its images to compare with", "use a dataset that has it"
            )
        return truth


def open_sample(request: EvaluationRequest, data: DataConfig) -> Sample:
    """The images to score, at the size of the model."""
    return _open(request, request.data, request.source, request.split or "test", request.count, data)


def open_training(request: EvaluationRequest, task: Task, count: int, data: DataConfig) -> Sample:
    """At most `count` training images."""
    source = request.training or request.source
    if request.packed and request.training is None:
        why = "a packed file is one split, and training images are needed too"
        raise UsageError(str(request.source), why, "name them with --training")
    return _open(request, request.data, source, task.fit_split, None, data, most=count)


def _open(
    request: EvaluationRequest,
    name: str,
    source: str | None,
    split: str,
    count: int | None,
    data: DataConfig,
    most: int = DEFAULT_COUNT,
) -> Sample:
    # From nothing tusk makes as many as are wanted; of a real split it takes some at random.
    from_nothing = source is None and DATASETS[name].made
    wanted_images = request_for(data, source=source, split=split, seed=request.seed)
    wanted_images = replace(wanted_images, count=(count or most) if from_nothing else None)
    dataset = open_dataset(name, wanted_images)
    if len(dataset) == 0:
        raise DataError(dataset.name, "there is no image in it", "name another source")
    if count is not None and count > len(dataset):
        raise UsageError(
            "--count", f"{count} images were asked for, but there are {len(dataset)}", f"give at most {len(dataset)}"
        )
    wanted = min(count or most, len(dataset))
    if wanted == len(dataset):
        return Sample(dataset, np.arange(wanted))
    lot = np.random.default_rng((request.seed, _STREAM)).permutation(len(dataset))[:wanted]
    return Sample(dataset, np.sort(lot))
