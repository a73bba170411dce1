from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.data.formats.test_idx import LABELS, idx_bytes
from tusk.data.dataset import Dataset
from tusk.data.datasets.mnist import MnistHard, read_mnist
from tusk.data.synthetic.canvases import Split
from tusk.errors import DataError

STEMS = {"train": "train", "test": "t10k"}
GREY = {"train": 100, "test": 200}


def fake_split(split: str, count: int = 30) -> tuple[np.ndarray, np.ndarray]:
    images = np.zeros((count, 28, 28), dtype=np.uint8)
    images[:, 6:22, 8:20] = GREY[split] + np.arange(count, dtype=np.uint8)[:, None, None]
    return images, (np.arange(count) % 10).astype(np.uint8)


def write_mnist(folder: Path, middle: str = "-", zipped: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        images, labels = fake_split(split)
        for name, values in ((f"images{middle}idx3-ubyte", images), (f"labels{middle}idx1-ubyte", labels)):
            content = idx_bytes(values)
            path = folder / f"{STEMS[split]}-{name}{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(content, mtime=0) if zipped else content)
    return folder


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("middle", ["-", "."])
@pytest.mark.parametrize("split", ["train", "test"])
def test_files_are_read_under_every_usual_name(tmp_path: Path, split: Split, middle: str, zipped: bool) -> None:
    images, labels = read_mnist(write_mnist(tmp_path, middle, zipped), split)
    expected_images, expected_labels = fake_split(split)
    np.testing.assert_array_equal(images, expected_images)
    np.testing.assert_array_equal(labels, expected_labels)


def test_folders_without_mnist_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: is not a folder; .*tusk data get mnist"):
        read_mnist(tmp_path / "nowhere", "train")
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    assert len(read_mnist(tmp_path, "train")[0]) == 30
    with pytest.raises(DataError, match="has no t10k-labels-idx1-ubyte"):
        read_mnist(tmp_path, "test")


def test_files_that_do_not_belong_together_are_named(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(LABELS)
    with pytest.raises(DataError, match="train-labels-idx1-ubyte: holds 10 labels for the 30 images"):
        MnistHard(tmp_path, split="train")
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((30, 20, 32), dtype=np.uint8)))
    with pytest.raises(DataError, match="t10k-images-idx3-ubyte: holds images of 32x20 pixels"):
        MnistHard(tmp_path, split="test")


def test_wrong_labels_and_too_few_digits_are_named(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.full(30, 10, dtype=np.uint8)))
    with pytest.raises(DataError, match="labels from 10 to 10"):
        MnistHard(tmp_path, split="train")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(3, dtype=np.uint8)))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((3, 28, 28), dtype=np.uint8)))
    with pytest.raises(DataError, match="has 3 digits, and a canvas needs 9"):
        MnistHard(tmp_path, split="train")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_split_holds_its_own_digits_alone(tmp_path: Path, split: Split) -> None:
    dataset = MnistHard(write_mnist(tmp_path), split=split, count=40)
    assert isinstance(dataset, Dataset)
    assert (dataset.name, len(dataset)) == ("mnist-hard", 40)
    greys = set(np.unique(dataset.images(range(40)))) - {0}
    assert greys == set(range(GREY[split], GREY[split] + 30))  # every one of its own, and none of the other's


def test_classes_are_the_labels_of_the_digits_drawn(tmp_path: Path) -> None:
    dataset = MnistHard(write_mnist(tmp_path), split="train", count=20)
    for index in range(20):
        image, truth = dataset.image(index), dataset.truth(index)
        assert truth.points is not None and truth.classes is not None
        for (x, y), label in zip(truth.points.astype(int), truth.classes, strict=True):
            assert (int(image[y, x, 0]) - 100) % 10 == label


def test_fifty_thousand_canvases_by_default(tmp_path: Path) -> None:
    dataset = MnistHard(write_mnist(tmp_path), split="test")
    assert len(dataset) == 50_000
    assert dataset.image(49_999).shape == (80, 80, 3)


def test_a_worker_gets_the_path_and_not_the_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path / "mnist")
    monkeypatch.chdir(tmp_path)
    dataset = MnistHard(Path("mnist"), split="test", count=9, seed=3)
    sent = pickle.dumps(dataset)
    assert len(sent) < 1_000
    monkeypatch.chdir("/")
    copy = pickle.loads(sent)
    assert (len(copy), copy.split, copy.seed) == (9, "test", 3)
    np.testing.assert_array_equal(copy.images(range(9)), dataset.images(range(9)))
