from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tusk.data.dataset import Dataset
from tusk.data.datasets.mtfl import Mtfl
from tusk.errors import DataError, UsageError

HEADER = "split,file,x0,x1,x2,x3,x4,y0,y1,y2,y3,y4"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [HEADER]
    for i in range(5):
        (tmp_path / "net").mkdir(exist_ok=True)
        Image.new("RGB", (80, 80), (40 * i, 10, 200)).save(tmp_path / "net" / f"{i}.png")
        xs, ys = [f"{i + k}.25" for k in range(5)], [f"{i + 10 * k}.5" for k in range(5)]
        lines.append(",".join(["test" if i == 3 else "train", f"net/{i}.png", *xs, *ys]))
    (tmp_path / "landmarks.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def change(folder: Path, line: int, text: str) -> None:
    path = folder / "landmarks.csv"
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n")


def test_reads_each_split_with_its_images_and_points(folder: Path) -> None:
    train, test = Mtfl(folder, "train"), Mtfl(folder, split="test")
    assert isinstance(train, Dataset)
    assert (len(train), len(test)) == (4, 1)
    assert [int(train.image(i)[0, 0, 0]) for i in range(4)] == [0, 40, 80, 160]
    assert test.image(0).shape == (80, 80, 3) and test.image(0)[5, 7].tolist() == [120, 10, 200]
    points = test.truth(0).points
    assert points is not None and points.dtype == np.float32
    assert points.tolist() == [[3.25, 3.5], [4.25, 13.5], [5.25, 23.5], [6.25, 33.5], [7.25, 43.5]]
    classes = train.truth(0).classes
    assert classes is not None and classes.tolist() == [0, 1, 2, 3, 4]
    assert train.class_names == ("left eye", "right eye", "nose", "left mouth corner", "right mouth corner")


def test_truth_cannot_be_spoilt_by_its_reader(folder: Path) -> None:
    data = Mtfl(folder)
    first = data.truth(0).points
    assert first is not None
    first[:] = -1
    again = data.truth(0).points
    assert again is not None and again[0, 0] == 0.25


@pytest.mark.parametrize(
    ("line", "text", "why"),
    [
        (1, "file,x0", "line 1"),
        (3, "train,net/1.png,1,2,3", "line 3 has 5 fields instead of 12"),
        (4, "train,net/2.png,1,2,3,4,five,1,2,3,4,5", "line 4"),
        (4, "train,net/2.png,1,2,3,4,nan,1,2,3,4,5", "line 4"),
        (2, "valid,net/0.png,1,2,3,4,5,1,2,3,4,5", "'valid'"),
        (6, "train,../secret.png,1,2,3,4,5,1,2,3,4,5", "line 6"),
        (6, "train,/etc/hosts,1,2,3,4,5,1,2,3,4,5", "line 6"),
        (5, "train,net/3.png,1,2,3,4,5,1,2,3,4,5", "split 'test'"),
    ],
)
def test_faults_are_named(folder: Path, line: int, text: str, why: str) -> None:
    change(folder, line, text)
    with pytest.raises(DataError) as error:
        Mtfl(folder, "test")
    assert "landmarks.csv" in error.value.what and why in error.value.why


def test_missing_table_image_split_and_index(folder: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        Mtfl(folder / "net")
    with pytest.raises(UsageError, match="did you mean 'train'"):
        Mtfl(folder, "trian")
    (folder / "net" / "0.png").unlink()
    data = Mtfl(folder)
    with pytest.raises(DataError, match=r"0\.png"):
        data.image(0)
    for index in (-1, 4):
        with pytest.raises(IndexError):
            data.image(index)
        with pytest.raises(IndexError):
            data.truth(index)


def test_a_table_that_is_not_text_is_a_data_error(folder: Path) -> None:
    (folder / "landmarks.csv").write_bytes(b"\xff\xfe\x00\x01" * 10)
    with pytest.raises(DataError):
        Mtfl(folder)
