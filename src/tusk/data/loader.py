"""Batches without end, in an order that seed and position alone decide.

The images of all epochs form one endless row: epoch after epoch, each in an order of its own drawn from (seed, epoch).
Batch p is images p * batch to (p + 1) * batch of that row. So a batch may hold the end of one epoch and the start of
the next, no image is ever dropped, a dataset smaller than a batch comes round more often, and a run that stopped after
p batches goes on with batch p, whatever the number of workers or of processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
import torch.utils.data

from tusk.data.dataset import Dataset, Int64Array, UInt8Array
from tusk.data.shards.order import windowed
from tusk.errors import DataError, UsageError, UserError

# Keeps the order of images apart from whatever else draws numbers from (seed, n).
_ORDER_STREAM = 0x0DE5


@dataclass(frozen=True)
class Batch:
    """What one training step sees."""

    images: torch.Tensor  # (B, 3, H, W), uint8
    indices: torch.Tensor  # (B,), int64: which images of the dataset they are
    position: int  # how many batches came before this one

    def pin_memory(self) -> Batch:
        """In memory that a GPU can read by itself, while this process goes on."""
        return Batch(self.images.pin_memory(), self.indices, self.position)


@dataclass(frozen=True)
class Order:
    """Which images each batch holds. `batch` counts the images of all `world` processes; this one is number `rank`."""

    images: int
    batch: int
    seed: int
    rank: int = 0
    world: int = 1
    shards: tuple[int, ...] = ()  # their sizes, where the images lie in shards: then shuffled within a window

    def indices(self, position: int) -> Int64Array:
        """(batch / world,): the images of this process in batch `position`."""
        share = self.batch // self.world
        start = position * self.batch + self.rank * share
        epochs, places = np.divmod(np.arange(start, start + share), self.images)
        chosen = np.empty(share, np.int64)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            if self.shards:
                chosen[here] = windowed(places[here], self.shards, self.seed, int(epoch))
            else:
                chosen[here] = _epoch_order(self.images, self.seed, int(epoch))[places[here]]
        return chosen


# A batch mostly lies in one epoch or two, and the next batch in the same.
@lru_cache(maxsize=2)
def _epoch_order(images: int, seed: int, epoch: int) -> Int64Array:
    """(images,): every image once."""
    return np.random.default_rng((seed, epoch, _ORDER_STREAM)).permutation(images)


class Loader(Iterator[Batch]):
    """An endless iterator of batches; close it, or use it in a `with` block, to end its workers.

    batch: images per step, over all processes; each of the `world` processes gets batch / world of them.
    workers: processes that read ahead; 0 reads in this one. The bytes are the same for any number.
    pinned: the images lie where a GPU reads them by itself.
    position: how many batches were given so far; a loader made with an old one's position goes on where that stopped.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        batch: int,
        seed: int,
        workers: int = 0,
        position: int = 0,
        rank: int = 0,
        world: int = 1,
        pinned: bool = False,
    ) -> None:
        if not 0 <= rank < world:
            raise UsageError(f"rank {rank}", f"is not one of {world} processes", f"give 0 to {world - 1}")
        if batch < 1 or batch % world:
            why = f"cannot be shared out equally to {world} process(es)"
            raise UsageError(f"batch {batch}", why, f"give a multiple of {world}")
        if workers < 0 or position < 0 or seed < 0:
            raise UsageError("workers, position and seed", "must not be negative", "give 0 or more")
        if len(dataset) == 0:
            raise DataError(dataset.name, "holds no images", "name another dataset")
        self.position = position
        # Whole batches travel as one message; `sampler` is the endless row of their positions. The generator is given
        # because DataLoader would otherwise draw from torch's global one, and so change what the caller draws next.
        self._batches: Iterator[Batch | _Failure] = iter(
            torch.utils.data.DataLoader(
                _Batches(dataset, Order(len(dataset), batch, seed, rank, world, shard_sizes(dataset))),
                batch_size=None,
                sampler=itertools.count(position),
                num_workers=workers,
                pin_memory=pinned,
                collate_fn=_unchanged,
                generator=torch.Generator(),
            )
        )

    def __next__(self) -> Batch:
        try:
            batch = next(self._batches)
        except RuntimeError as error:
            if "exited unexpectedly" not in str(error):
                raise
            fix = "use fewer workers; they may have run out of memory"
            raise UserError("the loader", "one of its workers died", fix) from error
        if isinstance(batch, _Failure):
            raise batch.kind(batch.what, batch.why, batch.fix)
        self.position += 1
        return batch

    def close(self) -> None:
        """End the workers. The loader gives nothing more."""
        # They end with the iterator that holds them, but the traceback of an error may keep that alive.
        shut_down = getattr(self._batches, "_shutdown_workers", None)
        if shut_down is not None:
            shut_down()
        self._batches = iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def shard_sizes(dataset: Dataset) -> tuple[int, ...]:
    """Those of a dataset of shards, framed or not; none for any other."""
    while hasattr(dataset, "original"):
        inner: Dataset = dataset.original
        if len(inner) != len(dataset):
            return ()  # cut to a number
        dataset = inner
    sizes: tuple[int, ...] = getattr(dataset, "shard_sizes", ())
    return sizes


@dataclass(frozen=True)
class _Failure:
    """A UserError on its way out of a worker: the exception itself would arrive without its three parts."""

    kind: type[UserError]
    what: str
    why: str
    fix: str


class _Batches(torch.utils.data.Dataset["Batch | _Failure"]):
    """Batch p for any p; this is what the workers run."""

    def __init__(self, dataset: Dataset, order: Order) -> None:
        self._dataset, self._order = dataset, order

    def __getitem__(self, position: int) -> Batch | _Failure:
        indices = self._order.indices(position)
        try:
            images = self._read(indices)
        except UserError as error:
            return _Failure(type(error), error.what, error.why, error.fix)
        return Batch(torch.from_numpy(images), torch.from_numpy(indices), position)

    def _read(self, indices: Int64Array) -> UInt8Array:
        first = self._dataset.image(int(indices[0]))
        images = np.empty((len(indices), 3, *first.shape[:2]), np.uint8)
        for slot, index in enumerate(indices):
            image = first if slot == 0 else self._dataset.image(int(index))
            if image.shape != first.shape:
                why = f"image {index} is {image.shape}, image {indices[0]} is {first.shape}"
                raise DataError(self._dataset.name, why, "a dataset's images must all have one size")
            images[slot] = image.transpose(2, 0, 1)  # (3, H, W)
        return images


def _unchanged(batch: Any) -> Any:
    """What DataLoader calls in place of stacking; it is typed there for lists alone."""
    return batch
