"""Canvases of nine digits: the composition behind `mnist-hard` and `digits`.

Canvas i follows from (seed, split, i) alone, by integer arithmetic on the raw words of a PCG64 generator.
Neither the order of access, nor the machine, nor the version of numpy (which may change how it makes bounded
integers, but not the raw words) can change a byte of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Int64Array, Truth, UInt8Array
from tusk.errors import DataError, UsageError, nearest

BoolArray = npt.NDArray[np.bool_]
UInt64Array = npt.NDArray[np.uint64]
Int16Array = npt.NDArray[np.int16]
Split = Literal["train", "test"]

CANVAS = 80
DIGITS = 9
PATCH = 28
# The true box is what evaluation puts around a keypoint; it is centred on the patch.
BOX = 20
PATCH_CENTRE = (PATCH - 1) / 2
# The least distance between two centres: a little less than a digit's size, so that digits may touch and cross at their
# ends, but are never on top of each other. Of MNIST's ink 0.5% then lies under two digits; with 16 px it would be 1.0%.
# With 20 px nine digits fit so tightly that most attempts fail.
DISTANCE = 18
# Darts thrown before a canvas is begun afresh: in about one of thirteen the first digits leave no room for the last.
DARTS = 256
# How far a patch's empty border may stand over the canvas' edge, and how many positions that leaves it on each axis.
RIM = (PATCH - BOX) // 2
POSITIONS = CANVAS - BOX + 1

_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFF_FFFF)


@dataclass(frozen=True)
class DigitBank:
    """The single digits that canvases are made of."""

    patches: UInt8Array  # (N, 28, 28), white on black, centred by mass
    labels: Int64Array  # (N,), each 0..9
    # (N, 4): the least left, the least top, the greatest left and the greatest top position of a patch, such that its
    # ink and its true box lie inside the canvas.
    room: Int16Array

    @staticmethod
    def of(patches: UInt8Array, labels: npt.NDArray[np.integer], source: str) -> DigitBank:
        """Checks the digits and measures the room of each; `source` names them in errors."""
        if patches.ndim != 3 or patches.shape[1:] != (PATCH, PATCH):
            raise DataError(
                source, f"has images of shape {patches.shape}, not (N, {PATCH}, {PATCH})", "use MNIST's own"
            )
        if labels.shape != patches.shape[:1]:
            raise DataError(
                source, f"has {len(patches)} images but {labels.size} labels", "use files that belong together"
            )
        if len(patches) < DIGITS:
            raise DataError(source, f"has {len(patches)} digits, and a canvas needs {DIGITS}", "use the whole set")
        if labels.min() < 0 or labels.max() > 9:
            raise DataError(source, f"has labels from {labels.min()} to {labels.max()}", "use labels from 0 to 9")
        left, right = _room(np.asarray(patches.any(axis=1)))
        top, bottom = _room(np.asarray(patches.any(axis=2)))
        room = np.stack([left, top, right, bottom], axis=1).astype(np.int16)
        return DigitBank(patches, labels.astype(np.int64), room)


def _room(ink: BoolArray) -> tuple[Int64Array, Int64Array]:
    """ink: (N, 28), where a patch has ink along one axis -> the least and the greatest position of the patch."""
    first = np.minimum(ink.argmax(axis=1), RIM)
    last = np.maximum(PATCH - 1 - ink[:, ::-1].argmax(axis=1), PATCH - 1 - RIM)
    return -first, CANVAS - 1 - last


@dataclass(frozen=True)
class Layouts:
    """Which digits each of n canvases holds, and the position of each patch's top-left pixel."""

    samples: Int64Array  # (n, 9) indices into the bank
    corners: Int16Array  # (n, 9, 2) x, y


class DigitCanvases:
    """`count` canvases made of the digits of one bank; a `Dataset`."""

    def __init__(self, name: str, bank: DigitBank, *, split: Split, count: int, seed: int) -> None:
        check_split(split)
        if count < 1:
            raise UsageError(f"count {count}", "is less than one", "ask for at least one canvas")
        if not 0 <= seed < 2**32:
            raise UsageError(f"seed {seed}", "is out of range", f"choose one from 0 to {2**32 - 1}")
        self._name, self._count = name, count
        self.bank, self.split, self.seed = bank, split, seed

    @property
    def name(self) -> str:
        return self._name

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple("0123456789")

    def __len__(self) -> int:
        return self._count

    def image(self, index: int) -> UInt8Array:
        canvas: UInt8Array = self.images([index])[0]
        return canvas

    def images(self, indices: Sequence[int] | Int64Array) -> UInt8Array:
        """(n, 80, 80, 3): several canvases at once, byte for byte as image() gives them, and several times faster."""
        layouts = self.layouts(indices)
        # Patches may stand over the edge by their empty border: a canvas with a rim spares clipping each of them.
        rimmed = np.zeros((len(indices), CANVAS + 2 * RIM, CANVAS + 2 * RIM), dtype=np.uint8)
        patches = self.bank.patches[layouts.samples]  # (n, 9, 28, 28)
        corners = (layouts.corners + RIM).tolist()  # plain integers, since they slice faster than numpy's
        for canvas, canvas_patches, canvas_corners in zip(rimmed, patches, corners, strict=True):
            for patch, (x, y) in zip(canvas_patches, canvas_corners, strict=True):
                window = canvas[y : y + PATCH, x : x + PATCH]
                np.maximum(window, patch, out=window)
        grey = rimmed[:, RIM:-RIM, RIM:-RIM]
        # Three strided writes: a broadcast copy would run over rows of three bytes, which is several times slower.
        rgb = np.empty((*grey.shape, 3), dtype=np.uint8)
        for channel in range(3):
            rgb[..., channel] = grey
        return rgb

    def truth(self, index: int) -> Truth:
        layouts = self.layouts([index])
        points = layouts.corners[0].astype(np.float32) + np.float32(PATCH_CENTRE)  # (9, 2)
        half = np.float32(BOX / 2)
        boxes = np.concatenate([points - half, points + half], axis=1)  # (9, 4)
        return Truth(points, boxes, self.bank.labels[layouts.samples[0]])

    def layouts(self, indices: Sequence[int] | Int64Array) -> Layouts:
        """For each canvas nine different digits, and centres by throwing darts (a Poisson-disk sample)."""
        streams = [self._stream(int(index)) for index in indices]
        samples = _choose(_words(streams, DIGITS), len(self.bank.patches))
        corners = np.zeros((len(streams), DIGITS, 2), dtype=np.int16)
        pending = np.arange(len(streams))
        while len(pending):
            words = _words([streams[row] for row in pending], DARTS)
            thrown, complete = _throw(words, self.bank.room[samples[pending]])
            corners[pending[complete]] = thrown[complete]
            pending = pending[~complete]
        return Layouts(samples, corners)

    def _stream(self, index: int) -> np.random.PCG64:
        """The endless stream of 64-bit words that belongs to one canvas."""
        if not 0 <= index < self._count:
            raise IndexError(f"canvas {index} of {self._count}")
        return np.random.PCG64(np.random.SeedSequence((self.seed, get_args(Split).index(self.split), index)))


def check_split(split: str) -> None:
    """Refuses a split that canvases do not have."""
    if split not in get_args(Split):
        raise UsageError(f"split '{split}'", "is not known", nearest(split, get_args(Split)))


def _words(streams: list[np.random.PCG64], count: int) -> UInt64Array:
    """The next words of every stream: (n, count)."""
    return np.array([stream.random_raw(count) for stream in streams], dtype=np.uint64).reshape(-1, count)


def _choose(words: UInt64Array, total: int) -> Int64Array:
    """Nine different numbers below `total` from nine words, by Floyd's method; (n, 9) -> (n, 9)."""
    lasts = np.arange(total - DIGITS, total)
    chosen = ((words >> _HALF) * (lasts + 1).astype(np.uint64) >> _HALF).astype(np.int64)
    ordered = np.sort(chosen, axis=1)
    # Only a number that comes twice needs replacing, and among thousands of digits that is rare.
    for row in np.nonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))[0]:
        for k in range(1, DIGITS):
            if chosen[row, k] in chosen[row, :k]:
                chosen[row, k] = lasts[k]
    return chosen


def _throw(words: UInt64Array, room: Int16Array) -> tuple[Int16Array, BoolArray]:
    """Darts fall on the pixel grid; each digit in turn takes the first on which it lies inside the canvas and far
    enough from the digits before it.

    words: (n, DARTS); room: (n, 9, 4) -> left and top positions (n, 9, 2), and which canvases (n,) are complete.
    """
    halves = np.stack([words & _LOW_HALF, words >> _HALF], axis=1)  # (n, 2, DARTS)
    darts = (halves * np.uint64(POSITIONS) >> _HALF).astype(np.int16) - np.int16(RIM)
    inside = (darts[:, None] >= room[:, :, :2, None]) & (darts[:, None] <= room[:, :, 2:, None])  # (n, 9, 2, DARTS)
    inside = inside[:, :, 0] & inside[:, :, 1]
    rows = np.arange(len(words))
    free = np.ones(words.shape, dtype=np.bool_)  # far enough from every digit placed so far
    complete = np.ones(len(words), dtype=np.bool_)
    corners = np.empty((len(words), DIGITS, 2), dtype=np.int16)
    for k in range(DIGITS):
        fits = free & inside[:, k]
        first = fits.argmax(axis=1)
        complete &= fits[rows, first]
        corners[:, k] = darts[rows, :, first]
        offset = darts - corners[:, k, :, None]
        offset *= offset
        free &= offset[:, 0] + offset[:, 1] >= DISTANCE**2
    return corners, complete
