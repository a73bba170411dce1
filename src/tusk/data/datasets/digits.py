"""`digits`: the canvases of `mnist-hard`, made from the small digits that come with scikit-learn. No download.

Those are 1,797 handwritten digits of 8x8 pixels, each pixel the count 0..16 of ink dots in a 4x4 square of the scan.
Here they are enlarged to MNIST's size, smoothly, and sharpened into pen strokes; in whole numbers throughout, so that
every machine and every version of an image library gives the same bytes.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tusk.data.dataset import Dataset, Int64Array, UInt8Array
from tusk.data.registry import Entry, Request, register
from tusk.data.synthetic.canvases import BOX, PATCH, DigitBank, DigitCanvases, Split, check_split

# The digits are in the order in which they were collected: a cut in one place keeps most writers on one side of it.
TRAIN_DIGITS = 1_300

_SIDE = 8
# Grey levels, of 16, that become black and white: with a higher black thin strokes break, with a lower one the holes of
# 6, 8 and 9 fill.
_BLACK, _WHITE = 5, 12
# A weight of 1 in the integer kernel below.
_ONE = 2_000


class Digits(DigitCanvases):
    """`digits`: the two splits are made of different digits, of mostly different writers."""

    def __init__(self, *, split: Split, count: int = 50_000, seed: int = 0) -> None:
        check_split(split)
        super().__init__("digits", _bank(split), split=split, count=count, seed=seed)

    def __reduce__(self) -> tuple[object, tuple[Split, int, int]]:
        # A worker makes its own digits: they take milliseconds.
        return _remake, (self.split, len(self), self.seed)


def _remake(split: Split, count: int, seed: int) -> Digits:
    return Digits(split=split, count=count, seed=seed)


@cache
def _bank(split: Split) -> DigitBank:
    from sklearn.datasets import load_digits  # slow to import

    data = load_digits()
    part = slice(None, TRAIN_DIGITS) if split == "train" else slice(TRAIN_DIGITS, None)
    small = np.asarray(data.images[part]).astype(np.int64)
    return DigitBank.of(enlarge(small), np.asarray(data.target[part]).astype(np.int64), "scikit-learn's digits")


def enlarge(small: Int64Array) -> UInt8Array:
    """(N, 8, 8) of 0..16 -> (N, 28, 28) of 0..255: a digit of about 20 pixels, centred by mass as MNIST's are."""
    weights = _cubic_weights()  # (28, 8)
    # Whole numbers: exact in whatever order the products are added.
    smooth = weights @ small @ weights.T  # (N, 28, 28)
    unit = _ONE**2
    sharp = np.clip((smooth - _BLACK * unit) * 255 // ((_WHITE - _BLACK) * unit), 0, 255)
    return np.stack([_centred(patch) for patch in sharp]).astype(np.uint8)


def _cubic_weights() -> Int64Array:
    """(28, 8): how much of each small pixel goes into each pixel of the patch, along one axis, in units of 1/2000.

    Catmull-Rom's cubic. Eight pixels become the middle 20 of 28, so pixel i lies at 0.4 (i - 4) - 0.3 small pixels:
    every distance is a whole number of tenths, and every weight a whole number of two-thousandths.
    """
    tenths = 4 * (np.arange(PATCH) - (PATCH - BOX) // 2)[:, None] - 3 - 10 * np.arange(_SIDE)[None, :]
    t = np.abs(tenths).astype(np.int64)
    near = 3 * t**3 - 50 * t**2 + _ONE
    far = -(t**3) + 50 * t**2 - 800 * t + 2 * _ONE
    return np.where(t < 10, near, np.where(t < 20, far, 0))


def _centred(patch: Int64Array) -> Int64Array:
    """Moves the ink by whole pixels so that its centre of mass comes nearest to the patch's centre, none of it lost."""
    for axis in (0, 1):
        profile = patch.sum(axis=1 - axis)
        mass = int(profile.sum())
        inked = np.nonzero(profile)[0]
        # 13.5 - mean, rounded: floor(14 - mean), without a division that could round differently.
        shift = (PATCH // 2 * mass - int((profile * np.arange(PATCH)).sum())) // mass
        shift = int(np.clip(shift, -inked[0], PATCH - 1 - inked[-1]))
        patch = np.roll(patch, shift, axis=axis)
    return patch


def _open(request: Request) -> Dataset:
    return Digits(split=request.half, count=request.count or 50_000, seed=request.seed)


register(
    Entry(
        "digits",
        "nine small handwritten digits on a canvas",
        "made from scikit-learn's digits",
        True,
        _open,
        scattered=True,
    )
)
