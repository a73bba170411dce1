"""Datasets by name, at the size that is asked for, and the words where one cannot be had."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tusk.config import Config
from tusk.data.dataset import Dataset, Truth
from tusk.data.loader import Loader
from tusk.data.registry import DATASETS, Entry, Request, list_datasets, open_dataset, register, request_for
from tusk.errors import UsageError, UserError
from tusk.training.trainer import Trainer


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


# --- a dataset from outside of the package: a class, a function, one call of `register` ---


class Dots:
    """White dots on images of 40 x 30 pixels: neither square nor of the network's size."""

    name, class_names = "dots", ("dot",)

    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def image(self, index):
        image = np.zeros((30, 40, 3), np.uint8)
        for x, y in self.truth(index).points.astype(int):
            image[y - 1 : y + 2, x - 1 : x + 2] = 255
        return image

    def truth(self, index):
        rng = np.random.default_rng((self.seed, index))
        return Truth(points=rng.integers([8, 3], [32, 27], (3, 2)).astype(np.float32), classes=np.zeros(3, np.int64))


def open_dots(request):
    return Dots(request.count or 20, request.seed)


@pytest.fixture
def dots(monkeypatch):
    len(DATASETS)  # our own are there before the copy is made
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))
    register(Entry("dots", "white dots", "made", True, open_dots))


@pytest.mark.usefixtures("dots")
def test_a_dataset_from_outside_is_listed_opened_and_trained_on():
    assert "dots" in list_datasets() and DATASETS["dots"].summary == "white dots"
    with pytest.raises(UsageError, match="did you mean 'dots'"):
        open_dataset("dost", Request())
    config = Config.model_validate(
        {
            "data": {"dataset": "dots", "size": 24, "grey": True},
            "model": {"keypoints": 3, "types": 2, "channels": 6, "width": 4, "levels": 2, "window": 5},
            "training": {"batch": 4, "steps": 4},
        }
    )
    dataset = open_dataset("dots", request_for(config.data, source=None, split="train", seed=1))
    assert dataset.image(0).shape == (24, 24, 3) and len(dataset) == 20
    x, y = np.rint(dataset.truth(0).points[0]).astype(int)
    assert dataset.image(0)[y, x].min() > 150  # the truth moved with the dot
    trainer = Trainer(config)
    before = [weights.detach().clone() for weights in trainer.network.parameters()]
    with Loader(dataset, batch=4, seed=0) as loader:
        losses = [trainer.train_step(next(loader).images, step / 4).losses["reconstruction"] for step in range(4)]
    assert np.isfinite(losses).all()
    assert any(not np.array_equal(a, b.detach()) for a, b in zip(before, trainer.network.parameters(), strict=True))


@pytest.mark.usefixtures("dots")
def test_a_name_that_is_taken_is_refused():
    for name in ("dots", "digits", "folder"):
        with pytest.raises(UsageError, match=f"dataset '{name}': there is one of that name already"):
            register(Entry(name, "", "", True, open_dots))


def test_names_are_ours_first_and_listing_them_loads_nothing_heavy():
    """In a fresh process, where no dataset file has been imported yet."""
    code = """
import sys
from tusk.data.registry import Entry, list_datasets, register
try:
    register(Entry("digits", "", "", True, lambda request: None))
except Exception as error:
    print(error)
print(*list_datasets())
print(*{"torch", "scipy", "sklearn", "h5py"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    refusal, names, heavy = done.stdout.splitlines()
    assert "there is one of that name already" in refusal
    assert names == "celeba clevr10 clevr6 digits faces folder h36m mnist-hard mtfl people tetrominoes"
    assert heavy == ""
