"""The images that a page is about, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tusk.data.dataset import Dataset, Truth
from tusk.errors import DataError


@dataclass(frozen=True)
class Sample:
    """N images of one dataset."""

    name: str
    images: Tensor  # (N, 3, H, W), uint8
    truths: tuple[Truth, ...]  # N of them, or none where nothing is known
    class_names: tuple[str, ...]

    def first(self, count: int) -> Sample:
        """The first images only."""
        return Sample(self.name, self.images[:count], self.truths[:count], self.class_names)

    def __len__(self) -> int:
        return len(self.images)


def sample_of(dataset: Dataset, count: int) -> Sample:
    """`count` images from all over a dataset: neighbours may be tiles of one picture."""
    count = min(count, len(dataset))
    if count == 0:
        raise DataError(dataset.name, "there is no image in it", "name another source")
    places = [place * len(dataset) // count for place in range(count)]
    pixels = np.stack([dataset.image(index) for index in places])  # (N, H, W, 3)
    truths = tuple(truth for truth in map(dataset.truth, places) if truth is not None)
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    return Sample(dataset.name, images, truths if len(truths) == count else (), dataset.class_names)
