"""The order of an epoch over shards: random, but never far ahead of the shards that are at hand.

The shards come in a random order; their pictures, in that order, are cut into windows, and each window is shuffled. So
only the shards of one window are open at a time, and, as for any dataset, seed and position alone decide what comes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tusk.data.dataset import Int64Array

WINDOW = 16_384  # pictures
_SHARDS, _WITHIN = 0x5AD5, 0x5AD6  # keep these random numbers apart from all others of (seed, epoch)


def windowed(places: Int64Array, sizes: tuple[int, ...], seed: int, epoch: int, window: int = WINDOW) -> Int64Array:
    """Places (n,) in the row of an epoch -> pictures (n,), numbered through all shards of these sizes."""
    order, begins, starts = _shard_order(sizes, seed, epoch)
    total = int(begins[-1])
    moved = np.empty(len(places), np.int64)
    for number in np.unique(places // window):
        here = places // window == number
        first = int(number) * window
        shuffled = _window(min(window, total - first), seed, epoch, int(number))
        moved[here] = first + shuffled[places[here] - first]
    at = np.searchsorted(begins, moved, side="right") - 1
    return np.asarray(starts[order[at]] + moved - begins[at], np.int64)


@lru_cache(maxsize=4)
def _shard_order(sizes: tuple[int, ...], seed: int, epoch: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The shards in the epoch's order; where each begins in the epoch (one more: the end); and where in the dataset."""
    order = np.random.default_rng((seed, epoch, _SHARDS)).permutation(len(sizes))
    each = np.array(sizes, np.int64)
    begins = np.concatenate([[0], each[order].cumsum()])
    return order, begins, np.concatenate([[0], each.cumsum()[:-1]])


@lru_cache(maxsize=4)
def _window(size: int, seed: int, epoch: int, number: int) -> Int64Array:
    return np.random.default_rng((seed, epoch, number, _WITHIN)).permutation(size)
