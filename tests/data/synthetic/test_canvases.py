from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.data.dataset import Dataset, UInt8Array
from tusk.data.synthetic.canvases import DARTS, DISTANCE, DigitBank, DigitCanvases, Split
from tusk.errors import DataError, UsageError


def make_bank(count: int = 60) -> DigitBank:
    """Rectangles of ink of every size and place that a patch allows, each of its own grey; no two alike."""
    patches = np.zeros((count, 28, 28), dtype=np.uint8)
    for number, patch in enumerate(patches):
        top, left = number * 5 % 12, number * 7 % 11
        bottom, right = 15 + number * 3 % 13, 16 + number * 11 % 12
        patch[top : bottom + 1, left : right + 1] = 100 + number
    return DigitBank.of(patches, np.arange(count) % 10, "rectangles")


BANK = make_bank()


def canvases(bank: DigitBank = BANK, split: Split = "train", count: int = 1_000, seed: int = 0) -> DigitCanvases:
    return DigitCanvases("rectangles", bank, split=split, count=count, seed=seed)


def plain_words(seed: int, split: int, index: int) -> Iterator[int]:
    bits = np.random.PCG64(np.random.SeedSequence((seed, split, index)))
    while True:
        yield int(bits.random_raw())


def plain_canvas(bank: DigitBank, seed: int, split: int, index: int) -> UInt8Array:
    """The slow, obvious way: one dart, one digit and one pixel at a time."""
    words = plain_words(seed, split, index)
    samples: list[int] = []
    for last in range(len(bank.labels) - 9, len(bank.labels)):
        sample = (next(words) >> 32) * (last + 1) // 2**32
        samples.append(last if sample in samples else sample)
    places: list[tuple[int, int]] = []
    while len(places) < 9:
        darts = []
        for _ in range(DARTS):
            word = next(words)
            darts.append((word % 2**32 * 61 // 2**32 - 4, word // 2**32 * 61 // 2**32 - 4))
        places = []
        for sample in samples:
            rows, columns = np.nonzero(bank.patches[sample])
            extent = (int(columns.min()), int(rows.min()), int(columns.max()), int(rows.max()))
            places += [place for place in darts if plainly_fits(extent, place, places)][:1]
    canvas = np.zeros((80, 80, 3), dtype=np.uint8)
    for sample, (left, top) in zip(samples, places, strict=True):
        for row in range(28):
            for column in range(28):
                ink = bank.patches[sample, row, column]
                if ink:
                    canvas[top + row, left + column] = np.maximum(canvas[top + row, left + column], ink)
    return canvas


def plainly_fits(ink: tuple[int, int, int, int], place: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    x, y = place
    inside = ink[0] + x >= 0 and ink[1] + y >= 0 and ink[2] + x < 80 and ink[3] + y < 80
    return inside and all((x - a) ** 2 + (y - b) ** 2 >= 18**2 for a, b in others)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), split=st.sampled_from(["train", "test"]), index=st.integers(0, 999))
def test_a_canvas_is_what_the_plain_way_makes(seed: int, split: Split, index: int) -> None:
    made = canvases(split=split, seed=seed).image(index)
    assert made.dtype == np.uint8 and made.flags.c_contiguous
    np.testing.assert_array_equal(made, plain_canvas(BANK, seed, ("train", "test").index(split), index))


def test_a_bank_of_nine_uses_each_digit_once_like_the_plain_way() -> None:
    bank = make_bank(9)
    dataset = canvases(bank)
    layouts = dataset.layouts(range(50))
    np.testing.assert_array_equal(np.sort(layouts.samples, axis=1), np.tile(np.arange(9), (50, 1)))
    np.testing.assert_array_equal(dataset.image(7), plain_canvas(bank, 0, 0, 7))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 999), max_size=12))
def test_neither_order_nor_company_changes_a_canvas(indices: list[int]) -> None:
    dataset = canvases()
    together = dataset.images(indices)
    assert together.shape == (len(indices), 80, 80, 3)
    for canvas, index in zip(together, indices, strict=True):
        np.testing.assert_array_equal(canvas, dataset.image(index))


def test_seed_split_and_index_each_change_the_canvas_and_the_count_does_not() -> None:
    same = canvases().image(3)
    np.testing.assert_array_equal(canvases(count=4).image(3), same)
    for other in (canvases(seed=1).image(3), canvases(split="test").image(3), canvases().image(4)):
        assert not np.array_equal(other, same)


def test_the_bytes_are_those_of_every_other_machine() -> None:
    content = canvases(seed=7).images(range(40)).tobytes()
    assert hashlib.sha256(content).hexdigest() == "c2eb0a8d1f61a0b008c8c1a4f18e8564d04259d6d83e976f91d0eb02d4b684e4"


def test_centres_keep_their_distance_and_ink_and_boxes_lie_inside() -> None:
    dataset = canvases()
    for index in range(300):
        truth = dataset.truth(index)
        assert truth.points is not None and truth.boxes is not None
        assert truth.points.dtype == truth.boxes.dtype == np.float32
        apart = np.linalg.norm(truth.points[:, None] - truth.points[None], axis=2)[~np.eye(9, dtype=bool)]
        assert apart.min() >= DISTANCE
        assert truth.boxes.min() >= -0.5 and truth.boxes.max() <= 79.5
        np.testing.assert_array_equal(truth.boxes[:, 2:] - truth.boxes[:, :2], np.full((9, 2), 20))
        np.testing.assert_array_equal((truth.boxes[:, 2:] + truth.boxes[:, :2]) / 2, truth.points)
        samples = dataset.layouts([index]).samples[0]
        for sample, (x, y) in zip(samples, truth.points - 13.5, strict=True):
            rows, columns = np.nonzero(BANK.patches[sample])
            assert rows.min() + y >= 0 and rows.max() + y <= 79
            assert columns.min() + x >= 0 and columns.max() + x <= 79


def test_points_and_classes_tell_what_is_drawn_where() -> None:
    patches = np.zeros((30, 28, 28), dtype=np.uint8)
    patches[:, 13:15, 13:15] = (5 + np.arange(30, dtype=np.uint8))[:, None, None]  # a dot whose grey is its number
    dataset = canvases(DigitBank.of(patches, np.arange(30) // 3, "dots"))
    for index in range(60):
        image, truth = dataset.image(index), dataset.truth(index)
        assert truth.points is not None and truth.classes is not None
        assert np.array_equal(image[..., 0], image[..., 1]) and np.array_equal(image[..., 0], image[..., 2])
        assert np.count_nonzero(image[..., 0]) == 9 * 4
        numbers = []
        for (x, y), label in zip(truth.points, truth.classes, strict=True):
            square = image[int(y - 0.5) : int(y + 1.5), int(x - 0.5) : int(x + 1.5), 0]
            assert square.min() == square.max() > 0
            numbers.append(int(square[0, 0]) - 5)
            assert numbers[-1] // 3 == label
        assert len(set(numbers)) == 9


def test_centres_fill_the_canvas_evenly_and_every_digit_has_its_turn() -> None:
    small = np.zeros((40, 28, 28), dtype=np.uint8)
    small[:, 10:18, 10:18] = 255
    layouts = canvases(DigitBank.of(small, np.zeros(40, dtype=np.int64), "squares")).layouts(range(1_000))
    centres = layouts.corners + 13.5
    assert centres.min() == 9.5 and centres.max() == 69.5  # a true box may touch the edge, not cross it
    np.testing.assert_allclose(centres.mean(axis=(0, 1)), 39.5, atol=1)
    quarters = (centres[..., 0] > 39.5) * 2 + (centres[..., 1] > 39.5)
    np.testing.assert_allclose(np.bincount(quarters.ravel()) / quarters.size, 0.25, atol=0.02)
    uses = np.bincount(layouts.samples.ravel(), minlength=40)
    assert uses.min() > 0.7 * 225 and uses.max() < 1.3 * 225


def test_overlapping_ink_is_drawn_with_maximum() -> None:
    full = np.full((9, 28, 28), 50, dtype=np.uint8)
    full[:, 14, 14] = 200
    dataset = canvases(DigitBank.of(full, np.arange(9), "blocks"))
    image = dataset.image(0)
    assert set(np.unique(image)) <= {0, 50, 200}
    assert np.count_nonzero(image[..., 0] == 200) == 9


def test_it_meets_the_protocol_and_survives_pickling() -> None:
    dataset = canvases(count=5)
    assert isinstance(dataset, Dataset)
    assert (dataset.name, len(dataset), dataset.class_names) == ("rectangles", 5, tuple("0123456789"))
    copy = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(copy.images(range(5)), dataset.images(range(5)))


@pytest.mark.parametrize("index", [-1, 5])
def test_an_index_outside_is_an_error(index: int) -> None:
    for read in (canvases(count=5).image, canvases(count=5).truth):
        with pytest.raises(IndexError, match="of 5"):
            read(index)


def test_wrong_settings_are_named() -> None:
    with pytest.raises(UsageError, match=r"split 'tests'.*did you mean 'test'"):
        canvases(split="tests")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="count 0"):
        canvases(count=0)
    for seed in (-1, 2**32):
        with pytest.raises(UsageError, match=f"seed {seed}"):
            canvases(seed=seed)


def test_a_bank_that_cannot_be_used_is_named() -> None:
    patches, labels = BANK.patches, BANK.labels
    for bad_patches, bad_labels, reason in (
        (patches[:, :20], labels, "shape"),
        (patches, labels[:-1], "60 images but 59 labels"),
        (patches[:8], labels[:8], "8 digits"),
        (patches, labels + 1, "labels from 1 to 10"),
        (patches, labels - 1, "labels from -1 to 8"),
    ):
        with pytest.raises(DataError, match=f"^here: .*{reason}"):
            DigitBank.of(bad_patches, bad_labels, "here")
