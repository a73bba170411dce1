"""Datasets by name: `tusk.datasets.open`, `register` and `list`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tusk.data.dataset import Dataset
    from tusk.data.registry import Request

__all__ = ["list", "open", "register"]


def open(
    name: str,
    source: str | None = None,
    split: str = "train",
    size: int | None = None,
    count: int | None = None,
    seed: int = 0,
) -> Dataset:
    """The dataset of that name: `len(it)`, `it.image(0)` (H, W, 3), `it.truth(0)` or None.

    source: where the originals are, for datasets that tusk does not make; size: side of the square images, or the
    dataset's own; count: how many images; seed: of those that tusk makes.
    """
    from tusk.data.registry import Request, open_dataset

    return open_dataset(name, Request(source=source, split=split, size=size, count=count, seed=seed))


def register(
    name: str,
    open: Callable[[Request], Dataset],
    *,
    summary: str = "",
    origin: str = "",
    made: bool = False,
    scattered: bool = False,
) -> None:
    """Add a dataset, which `tusk.train(name)` and `tusk.datasets.open(name)` then know.

    open: what a request (source, split, size, count, seed) gives; made: it needs no source; scattered: objects lie
    anywhere, so that a tile of an image is as good as a whole one.
    """
    from tusk.data.registry import Entry, register

    register(Entry(name, summary, origin, made, open, scattered=scattered))


def list() -> builtins.list[str]:
    """The names of all datasets."""
    from tusk.data.registry import DATASETS

    return [*DATASETS]
