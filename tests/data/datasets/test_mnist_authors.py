from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tusk.data.dataset import Dataset
from tusk.data.datasets.mnist_authors import MnistHardReleased, is_released_layout
from tusk.errors import DataError

COUNT = 4
LABELS = np.arange(COUNT * 9).reshape(COUNT, 9) % 10
KEYPOINTS = np.concatenate([np.arange(COUNT * 18).reshape(COUNT, 9, 2) + 0.25, np.full((COUNT, 9, 1), 10.0)], axis=2)


def picture(index: int) -> np.ndarray:
    return np.random.default_rng(index).integers(0, 256, (80, 80, 3), dtype=np.uint8)


def write_released(folder: Path, prefix: str = "train/", separator: str = " ", split: str = "train") -> Path:
    (folder / split).mkdir(parents=True)
    for index in range(COUNT):
        Image.fromarray(picture(index)).save(folder / split / f"{index:05d}.png")
    (folder / f"{split}.txt").write_text("".join(f"{prefix}{index:05d}.png\n" for index in range(COUNT)))
    (folder / f"{split}_labels.txt").write_text("\n".join(separator.join(map(str, row)) for row in LABELS) + "\n\n")
    np.save(folder / f"{split}_keypoints.npy", KEYPOINTS)
    return folder


def check(dataset: MnistHardReleased) -> None:
    assert isinstance(dataset, Dataset)
    assert (dataset.name, len(dataset), len(dataset.class_names)) == ("mnist-hard", COUNT, 10)
    for index in range(COUNT):
        np.testing.assert_array_equal(dataset.image(index), picture(index))
        truth = dataset.truth(index)
        assert truth.points is not None and truth.boxes is not None and truth.classes is not None
        np.testing.assert_array_equal(truth.points, KEYPOINTS[index, :, :2])
        np.testing.assert_array_equal(truth.boxes[:, :2], KEYPOINTS[index, :, :2] - 10)
        np.testing.assert_array_equal(truth.boxes[:, 2:], KEYPOINTS[index, :, :2] + 10)
        np.testing.assert_array_equal(truth.classes, LABELS[index])
        assert truth.points.dtype == truth.boxes.dtype == np.float32 and truth.classes.dtype == np.int64


@pytest.mark.parametrize("separator", [" ", ", ", ",", "\t", "; ", ".0 ", ".000000000000000000e+00 "])
def test_labels_are_read_between_any_separators(tmp_path: Path, separator: str) -> None:
    check(MnistHardReleased(write_released(tmp_path, separator=separator), split="train"))


@pytest.mark.parametrize(
    "prefix",
    ["train/", "./train/", "", "/home/someone/data/mnist_hard/train/", "mnist_hard/train/", "C:\\data\\train\\"],
)
def test_pictures_are_found_whatever_machine_the_list_was_written_on(tmp_path: Path, prefix: str) -> None:
    write_released(tmp_path, prefix=prefix)
    if not prefix:
        for path in (tmp_path / "train").iterdir():
            path.rename(tmp_path / path.name)
    check(MnistHardReleased(tmp_path, split="train"))


OUTSIDE = "which is not inside of the folder"


def test_nothing_outside_of_the_folder_is_opened(tmp_path: Path) -> None:
    write_released(tmp_path / "pictures")
    elsewhere = tmp_path / "pictures" / "train" / "00000.png"
    write_released(tmp_path / "lists", prefix=f"{tmp_path}/pictures/train/")
    for path in (tmp_path / "lists" / "train").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=f"train.txt, line 1: names the file '{elsewhere}', {OUTSIDE}"):
        MnistHardReleased(tmp_path / "lists", split="train")


@pytest.mark.parametrize("line", ["../pictures/0.png", "train/../../x.png", "..\\x.png", "{abs}", "C:/x.png", "/"])
@pytest.mark.parametrize("number", [1, 3])
def test_a_line_that_leads_out_of_the_folder_is_named(tmp_path: Path, number: int, line: str) -> None:
    write_released(tmp_path / "data")
    line = line.replace("{abs}", str(tmp_path / "data" / "test.txt"))
    file = tmp_path / "data" / "train.txt"
    lines = file.read_text().splitlines()
    lines[number - 1] = line
    file.write_text("\n".join(lines))
    # The first line also tells where the pictures are: without '..' it may just not be there.
    why = OUTSIDE if number > 1 or ".." in line else "which is not"
    with pytest.raises(DataError, match=rf"train.txt, line {number}: names .*{why}"):
        MnistHardReleased(tmp_path / "data", split="train")


def test_test_split_brackets_and_pickling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_released(tmp_path / "data", prefix="test/", split="test")
    (tmp_path / "data" / "test_labels.txt").write_text("".join(f"{row.tolist()}\n" for row in LABELS))
    monkeypatch.chdir(tmp_path)
    dataset = MnistHardReleased(Path("data"), split="test")
    assert is_released_layout(Path("data")) and not is_released_layout(Path("data/test"))
    monkeypatch.chdir("/")
    check(pickle.loads(pickle.dumps(dataset)))
    for index in (-1, COUNT):
        with pytest.raises(IndexError):
            dataset.image(index)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_counts_that_differ_are_named(tmp_path: Path) -> None:
    write_released(tmp_path)
    edit(tmp_path / "train.txt", "train/00003.png\n", "")
    with pytest.raises(DataError, match=r"train_labels.txt: has 4 entries for 3 pictures"):
        MnistHardReleased(tmp_path, split="train")
    (tmp_path / "train_labels.txt").write_text("\n".join(" ".join(map(str, row)) for row in LABELS[:3]))
    with pytest.raises(DataError, match=r"train_keypoints.npy: has 4 entries for 3 pictures"):
        MnistHardReleased(tmp_path, split="train")


@pytest.mark.parametrize(("new", "reason"), [
    ("0 1 2 3 4 5 6 7", "line 1: has 8 labels for 9 keypoints"),
    ("0 1 2 3 4 5 6 7 ten", "line 1: .* is not a list of digits"),
    ("0 1 2 3 4 5 6 7 10", "line 1: .* is not a list of digits"),
    ("0 1 2 3 4 5 6 7 -8", "line 1: .* is not a list of digits"),
    ("0 1 2 3 4 5 6 7 8.5", "line 1: .* is not a list of digits"),
    ("0 1 2 3 4 5 6 7 nan", "line 1: .* is not a list of digits"),
])  # fmt: skip
def test_labels_that_are_none_are_named(tmp_path: Path, new: str, reason: str) -> None:
    write_released(tmp_path)
    edit(tmp_path / "train_labels.txt", "0 1 2 3 4 5 6 7 8", new)
    with pytest.raises(DataError, match=reason):
        MnistHardReleased(tmp_path, split="train")


@pytest.mark.parametrize(("values", "reason"), [
    (KEYPOINTS[:, :, :2], r"shape \(4, 9, 2\)"),
    (KEYPOINTS.reshape(-1, 3), r"shape \(36, 3\)"),
    (KEYPOINTS[:, :0], r"shape \(4, 0, 3\)"),
    (np.where(KEYPOINTS == 10, np.nan, KEYPOINTS), "not finite"),
    (np.where(KEYPOINTS == 10, 0, KEYPOINTS), "not positive"),
    (KEYPOINTS.astype(complex), "not real numbers"),
    (KEYPOINTS.astype(str), "not real numbers"),
])  # fmt: skip
def test_keypoints_of_another_kind_are_named(tmp_path: Path, values: np.ndarray, reason: str) -> None:
    write_released(tmp_path)
    np.save(tmp_path / "train_keypoints.npy", values)
    with pytest.raises(DataError, match=f"train_keypoints.npy: .*{reason}"):
        MnistHardReleased(tmp_path, split="train")


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("sprung"),)  # type: ignore[return-value]


def test_a_pickle_in_the_keypoints_is_refused_unopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_released(tmp_path)
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Trap()))
    (tmp_path / "sprung").unlink()  # so the trap works
    np.save(tmp_path / "train_keypoints.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read as an array of numbers"):
        MnistHardReleased(tmp_path, split="train")
    (tmp_path / "train_keypoints.npy").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError, match="cannot be read as an array of numbers"):
        MnistHardReleased(tmp_path, split="train")
    assert not (tmp_path / "sprung").exists()


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_released(tmp_path)
    dataset = MnistHardReleased(tmp_path, split="train")
    (tmp_path / "train" / "00002.png").unlink()
    with pytest.raises(DataError, match=r"00002\.png"):
        dataset.image(2)
    (tmp_path / "train" / "00000.png").unlink()
    with pytest.raises(DataError, match=r"train.txt, line 1: names 'train/00000.png', which is not there"):
        MnistHardReleased(tmp_path, split="train")
    for name in ("train_labels.txt", "train_keypoints.npy", "train.txt"):
        (tmp_path / name).unlink()
        with pytest.raises(DataError, match=f"{name}: cannot be read"):
            MnistHardReleased(tmp_path, split="train")
    (tmp_path / "train.txt").write_text("\n")
    with pytest.raises(DataError, match=r"train.txt: is empty"):
        MnistHardReleased(tmp_path, split="train")
