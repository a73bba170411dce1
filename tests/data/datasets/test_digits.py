from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tusk.data.dataset import Dataset
from tusk.data.datasets.digits import TRAIN_DIGITS, Digits, enlarge
from tusk.data.synthetic.canvases import Split
from tusk.errors import UsageError


def catmull_rom(distance: float) -> float:
    t = abs(distance)
    if t < 1:
        return 1.5 * t**3 - 2.5 * t**2 + 1
    return -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2 if t < 2 else 0.0


def plainly_enlarged(small: np.ndarray) -> np.ndarray:
    """By the textbook, in floating point, one pixel at a time; not yet centred."""
    patch = np.zeros((28, 28))
    for row in range(28):
        for column in range(28):
            y, x = (row - 4 + 0.5) * 8 / 20 - 0.5, (column - 4 + 0.5) * 8 / 20 - 0.5
            value = sum(small[i, j] * catmull_rom(y - i) * catmull_rom(x - j) for i in range(8) for j in range(8))
            patch[row, column] = np.clip((value - 5) / 7, 0, 1) * 255
    return patch


def test_enlarging_is_the_textbook_cubic_moved_to_the_centre() -> None:
    for small in load_digits().images[:3]:
        plain = plainly_enlarged(small)
        made = enlarge(small[None].astype(np.int64))[0]
        moves = [np.roll(plain, (down, right), (0, 1)) for down in range(-5, 6) for right in range(-5, 6)]
        assert min(np.abs(made - move).max() for move in moves) <= 1.0


@pytest.mark.parametrize("split", ["train", "test"])
def test_digits_are_of_mnists_size_and_centred_by_mass(split: Split) -> None:
    patches = Digits(split=split, count=1).bank.patches.astype(np.float64)
    assert patches.shape[1:] == (28, 28)
    heights = patches.any(axis=2).sum(axis=1)
    widths = patches.any(axis=1).sum(axis=1)
    assert 19 <= np.median(heights) <= 21 and heights.max() <= 22
    assert 13 <= np.median(widths) <= 17 and widths.max() <= 22
    mass = patches.sum(axis=(1, 2))
    for axis in (1, 2):
        centre = (patches.sum(axis=3 - axis) * np.arange(28)).sum(axis=1) / mass
        assert np.abs(centre - 13.5).max() <= 0.5
    # As much ink and paper as in MNIST, where 10% of the pixels are above 200 and 81% are black.
    assert 0.08 < np.mean(patches > 200) < 0.13
    assert 0.75 < np.mean(patches == 0) < 0.85


def test_splits_share_no_digit_and_lose_none() -> None:
    train, test = Digits(split="train", count=1).bank, Digits(split="test", count=1).bank
    targets = load_digits().target
    np.testing.assert_array_equal(train.labels, targets[:TRAIN_DIGITS])
    np.testing.assert_array_equal(test.labels, targets[TRAIN_DIGITS:])
    assert not {patch.tobytes() for patch in train.patches} & {patch.tobytes() for patch in test.patches}
    for bank in (train, test):
        assert np.bincount(bank.labels, minlength=10).min() >= 40  # every class, about evenly


@pytest.mark.parametrize(
    ("split", "digest"),
    [
        ("train", "91e552f0caf2fdc6bcfa057e08cf053e15f2c20ea52671bb8e0847e80135e438"),
        ("test", "e009491a53638a1aaf197f6a2de1b4bdb87dd2172da316997ce61e757c48825c"),
    ],
)
def test_the_bytes_are_those_of_every_other_machine(split: Split, digest: str) -> None:
    assert hashlib.sha256(Digits(split=split).images(range(20)).tobytes()).hexdigest() == digest


def test_it_meets_the_protocol_and_a_worker_makes_its_own() -> None:
    dataset = Digits(split="test", count=7, seed=2)
    assert isinstance(dataset, Dataset)
    assert (dataset.name, len(dataset)) == ("digits", 7)
    sent = pickle.dumps(dataset)
    assert len(sent) < 500
    copy = pickle.loads(sent)
    assert (len(copy), copy.seed, copy.split) == (7, 2, "test")
    np.testing.assert_array_equal(copy.images(range(7)), dataset.images(range(7)))
    assert len(Digits(split="train")) == 50_000
    with pytest.raises(UsageError, match="split 'all'"):
        Digits(split="all")  # type: ignore[arg-type]


def test_importing_the_module_does_not_import_scikit_learn() -> None:
    code = "import sys, tusk.data.datasets.digits; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
