"""Datasets by name, at the size that is asked for, and the words where one cannot be had."""

import numpy as np
import pytest
from PIL import Image

from tusk.data.dataset import Dataset
from tusk.data.registry import DATASETS, Request, open_dataset
from tusk.errors import UserError


@pytest.mark.parametrize("name", ["digits", "tetrominoes", "clevr6", "clevr10", "faces", "people"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_everything_that_is_made_opens_from_nothing(name, split):
    dataset = open_dataset(name, Request(split=split, count=3, seed=1))
    assert isinstance(dataset, Dataset) and len(dataset) == 3
    image, truth = dataset.image(2), dataset.truth(2)
    assert image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
    assert truth is not None and truth.points is not None and truth.points.shape[1] == 2
    height, width = image.shape[:2]
    assert (truth.points >= -20).all() and (truth.points <= max(height, width) + 20).all()
    assert np.array_equal(image, open_dataset(name, Request(split=split, count=3, seed=1)).image(2))
    assert not np.array_equal(image, open_dataset(name, Request(split=split, count=3, seed=2)).image(2))


@pytest.mark.parametrize("name", ["digits", "tetrominoes", "faces", "people", "clevr6"])
def test_train_and_test_differ(name):
    train, test = (open_dataset(name, Request(split=split, count=2)) for split in ("train", "test"))
    assert not np.array_equal(train.image(0), test.image(0))


def test_another_size_moves_the_truth_along():
    own = open_dataset("tetrominoes", Request(count=2))
    scaled = open_dataset("tetrominoes", Request(count=2, size=70))
    padded = open_dataset("tetrominoes", Request(count=2, size=40, fit="pad"))
    assert scaled.image(0).shape == (70, 70, 3) and padded.image(0).shape == (40, 40, 3)
    assert np.array_equal(padded.image(0)[2:37, 2:37], own.image(0))
    np.testing.assert_allclose(padded.truth(0).points, own.truth(0).points + 2)
    np.testing.assert_allclose(scaled.truth(0).points, own.truth(0).points * 2 + 0.5, atol=1e-5)
    for dataset in (own, scaled, padded):
        truth = dataset.truth(1)
        for number in range(3):
            rows, columns = np.nonzero(truth.mask == number + 1)
            np.testing.assert_allclose(truth.points[number], [columns.mean(), rows.mean()], atol=0.51)
            left, top, right, bottom = truth.boxes[number]
            assert left <= columns.min() and columns.max() <= right and top <= rows.min() and rows.max() <= bottom


def test_a_folder_opens_by_its_path(tmp_path):
    for number in range(3):
        Image.new("RGB", (50, 40), (number * 40, 0, 0)).save(tmp_path / f"{number}.png")
    dataset = open_dataset("folder", Request(source=str(tmp_path), size=32))
    assert len(dataset) == 3 and dataset.image(1).shape == (32, 32, 3)
    assert dataset.truth(0) is None


@pytest.mark.parametrize(
    ("name", "request_", "words"),
    [
        ("mnist-hart", Request(), "did you mean 'mnist-hard'?"),
        ("folder", Request(), "no pictures were named"),
        ("celeba", Request(), "use 'faces'"),
        ("h36m", Request(), "use 'people'"),
        ("digits", Request(split="tset"), "did you mean 'test'?"),
        ("tetrominoes", Request(count=1, size=20, fit="pad"), "do not fit in 20 pixels"),
    ],
)
def test_what_cannot_be_opened_is_said_in_one_sentence(name, request_, words, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(UserError) as caught:
        open_dataset(name, request_).image(0)
    assert words in str(caught.value)


def test_mnist_hard_says_how_to_get_mnist(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(UserError, match="tusk data get mnist"):
        open_dataset("mnist-hard", Request())


def test_every_preset_names_a_dataset():
    from tusk.presets import load_config, preset_names

    assert all(load_config(name).data.dataset in DATASETS for name in preset_names())
