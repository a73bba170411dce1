from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tusk.data.datasets.celeba.index as celeba_index
from tusk.data.dataset import Dataset
from tusk.data.datasets.celeba import CelebA
from tusk.data.framing import Framed, Framing
from tusk.errors import DataError, UsageError

LANDMARKS = "lefteye_x lefteye_y righteye_x righteye_y nose_x nose_y leftmouth_x leftmouth_y rightmouth_x rightmouth_y"
COUNT = 12
SMALL_FACES = {2, 7}  # images whose face box is below 30%
MAFL_TRAIN, MAFL_TEST = (1, 2, 3), (7, 8, 9)


def file_name(i: int) -> str:
    return f"{i:06d}.jpg"


def face(i: int) -> tuple[int, int, int, int, int, int]:
    """Width and height of photograph i, then its box: x, y, width, height."""
    width, height = 100 + 10 * i, 160 + 4 * i
    share = 0.4 if i in SMALL_FACES else 0.7
    return width, height, 10 + i, 12, round(width * share), round(height * share)


def eye(i: int) -> tuple[int, int]:
    return 30 + 2 * i, 40 + 3 * i


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "celeba"
    for part in ("img_celeba", "Anno", "Eval"):
        (root / part).mkdir(parents=True)
    landmarks, boxes = [str(COUNT), LANDMARKS + " "], [str(COUNT), "image_id x_1 y_1 width height"]
    for i in range(1, COUNT + 1):
        width, height, x, y, wide, high = face(i)
        pixels = np.full((height, width, 3), 60, np.uint8)
        left, top = eye(i)
        pixels[top - 4 : top + 5, left - 4 : left + 5] = (240, 20, 20)  # a red eye, centred on its landmark
        Image.fromarray(pixels).save(root / "img_celeba" / file_name(i), quality=95, subsampling=0)
        landmarks.append(f"{file_name(i)} {left} {top}    60 41 45 60 33   80 58 -3")
        boxes.append(f"{file_name(i)}   {x}  {y} {wide} {high}")
    (root / "Anno" / "list_landmarks_celeba.txt").write_text("\n".join(landmarks) + "\n")
    (root / "Anno" / "list_bbox_celeba.txt").write_text("\n".join(boxes) + "\n")
    parts = [f"{file_name(i)} {0 if i <= 6 else 1 if i <= 8 else 2}" for i in range(1, COUNT + 1)]
    (root / "Eval" / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")
    (root / "training.txt").write_text("".join(file_name(i) + "\n" for i in MAFL_TRAIN))
    (root / "testing.txt").write_text("".join(file_name(i) + "\n" for i in MAFL_TEST))
    return root


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def numbers(data: CelebA) -> list[int]:
    return [int(name[:6]) for name in data.files]


def test_splits_filter_and_mafl(folder: Path, cache: Path) -> None:
    train = CelebA(folder, "train", cache=cache)
    assert isinstance(train, Dataset) and len(train) == len(train.files)
    assert numbers(train) == [1, 3, 4, 5, 6, 10, 11, 12]
    assert numbers(CelebA(folder, "mafl-train", cache=cache)) == [1, 3]
    assert numbers(CelebA(folder, "mafl-test", cache=cache)) == [8, 9]
    assert numbers(CelebA(folder, "official-train", cache=cache)) == [1, 3, 4, 5, 6]
    assert numbers(CelebA(folder, "official-test", cache=cache)) == [9, 10, 11, 12]
    with pytest.raises(DataError, match="min_face"):
        CelebA(folder, "official-valid", cache=cache)  # 7 and 8 are both MAFL's test images


@pytest.mark.parametrize("min_face", [0.0, 0.3, 0.48])
@pytest.mark.parametrize("split", ["train", "mafl-train", "official-train"])
def test_mafl_test_images_are_never_trained_on(folder: Path, cache: Path, split: str, min_face: float) -> None:
    data = CelebA(folder, split, min_face=min_face, cache=cache)
    assert not set(numbers(data)) & set(MAFL_TEST)


def test_filter_is_the_share_of_the_picture(folder: Path, cache: Path) -> None:
    everything = numbers(CelebA(folder, min_face=0, cache=cache))
    assert everything == [1, 2, 3, 4, 5, 6, 10, 11, 12]
    for least in (0.15, 0.17, 0.48, 0.49):
        expected = [i for i in everything if face(i)[4] * face(i)[5] >= least * face(i)[0] * face(i)[1]]
        assert numbers(CelebA(folder, min_face=least, cache=cache)) == expected


@pytest.mark.parametrize("size", [32, 80, 112])
def test_image_and_truth_agree(folder: Path, cache: Path, size: int) -> None:
    data = CelebA(folder, cache=cache)
    framed = Framed(data, Framing(size, "letterbox"))
    for index, i in enumerate(numbers(data)):
        image, truth = framed.image(index), framed.truth(index)
        width, height, x, y, wide, high = face(i)
        assert image.shape == (size, size, 3) and image.dtype == np.uint8
        assert truth.points is not None and truth.points.shape == (5, 2) and truth.points.dtype == np.float32
        # The landmark is the middle of the red square, wherever resizing has put it.
        red = np.clip(image[:, :, 0].astype(float) - 90, 0, None)
        rows, columns = np.mgrid[:size, :size]
        middle = [(red * columns).sum() / red.sum(), (red * rows).sum() / red.sum()]
        assert np.abs(truth.points[0] - middle).max() < 0.15
        placement = framed.placement(index, width, height)
        assert truth.points[4] == pytest.approx(placement.to_network([58, -3]), abs=1e-4)  # beyond the picture's edge
        assert truth.boxes is not None and truth.boxes.shape == (1, 4)
        corners = placement.to_network([[x - 0.5, y - 0.5], [x + wide - 0.5, y + high - 0.5]])
        assert truth.boxes[0] == pytest.approx(corners.ravel(), abs=1e-4)
        assert data.image(index).shape == (height, width, 3) and data.truth(index).points[0].tolist() == [*eye(i)]
        assert truth.classes is not None and truth.classes.tolist() == [0, 1, 2, 3, 4]
    assert data.class_names == ("left eye", "right eye", "nose", "left mouth corner", "right mouth corner")
    for index in (-1, len(data)):
        with pytest.raises(IndexError):
            data.image(index)
        with pytest.raises(IndexError):
            data.truth(index)


def test_sizes_are_read_once_and_kept_outside_of_the_input(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    first = CelebA(folder, cache=cache)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before

    def refuse(path: Path) -> tuple[int, int]:
        raise AssertionError(f"{path} was read again")

    real = celeba_index.image_size
    monkeypatch.setattr(celeba_index, "image_size", refuse)
    again = CelebA(folder, cache=cache)
    assert again.files == first.files
    # Another split needs images that the first one did not; only then is anything read.
    with pytest.raises(AssertionError, match="read again"):
        CelebA(folder, "mafl-test", cache=cache)
    # A file more in the folder: the index is made anew. A damaged index: likewise.
    monkeypatch.setattr(celeba_index, "image_size", real)
    (folder / "img_celeba" / "other.jpg").write_bytes(b"")
    assert CelebA(folder, cache=cache).files == first.files
    for index in cache.iterdir():
        index.write_bytes(index.read_bytes()[:50])
    assert CelebA(folder, cache=cache).files == first.files


def test_default_cache_is_the_users(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home-cache"))
    CelebA(folder)
    assert len(list((tmp_path / "home-cache" / "tusk").iterdir())) == 1


def test_works_where_the_cache_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert len(CelebA(folder, cache=tmp_path / "file")) == 8


@pytest.mark.parametrize("place", ["MAFL", "Eval"])
def test_other_places_of_images_and_lists(folder: Path, cache: Path, place: str) -> None:
    expected = numbers(CelebA(folder, cache=cache))
    (folder / "Img").mkdir()
    (folder / "img_celeba").rename(folder / "Img" / "img_celeba")
    (folder / place).mkdir(exist_ok=True)
    for name in ("training.txt", "testing.txt"):
        (folder / name).rename(folder / place / name)
    data = CelebA(folder, cache=cache)
    assert numbers(data) == expected and data.image(0).shape == (164, 110, 3)
    assert numbers(CelebA(folder, "mafl-train", cache=cache)) == [1, 3]


def test_boxes_may_come_in_another_order(folder: Path, cache: Path) -> None:
    expected = CelebA(folder, cache=cache).truth(3).boxes
    path = folder / "Anno" / "list_bbox_celeba.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], *reversed(lines[2:])]) + "\n")
    boxes = CelebA(folder, cache=cache).truth(3).boxes
    assert boxes is not None and expected is not None and boxes.tolist() == expected.tolist()


LANDMARK_FILE, BOX_FILE = "Anno/list_landmarks_celeba.txt", "Anno/list_bbox_celeba.txt"
PARTITION, TRAINING, TESTING = "Eval/list_eval_partition.txt", "training.txt", "testing.txt"


@pytest.mark.parametrize(
    ("file", "line", "text", "why"),
    [
        (LANDMARK_FILE, 1, "13", "promises 13 images, but 12 follow"),
        (BOX_FILE, 1, "11", "promises 11 images, but 12 follow"),
        (BOX_FILE, 1, "many", "line 1 has 'many'"),
        (LANDMARK_FILE, 2, "x_1 y_1", "line 2"),
        (LANDMARK_FILE, 5, "000003.jpg 1 2 3", "line 5 has 4 fields instead of 11"),
        (LANDMARK_FILE, 6, "000004.jpg 1 2 3 4 5 6 7 8 9 ten", "line 6"),
        (BOX_FILE, 7, "000005.jpg 1 2 3.5 4", "line 7"),
        (BOX_FILE, 7, "000005.jpg 1 2 99999999999999999999 4", "line 7"),
        (BOX_FILE, 8, "../000006.jpg 1 2 3 4", "line 8"),
        (BOX_FILE, 8, "000005.jpg 1 2 3 4", "line 8 names 000005.jpg a second time"),
        (BOX_FILE, 8, "other.jpg 1 2 3 4", "no box for 000006.jpg"),
        (TESTING, 2, "999999.jpg", "line 2 names 999999.jpg"),
        (TESTING, 3, "000007.jpg", "line 3 names 000007.jpg a second time"),
        (TRAINING, 1, "000008.jpg", "also in testing.txt"),
        (PARTITION, 4, "000004.jpg 3", "line 4"),
        (PARTITION, 4, "000004.jpg", "line 4"),
        (PARTITION, 4, "000003.jpg 0", "000004.jpg"),
        (PARTITION, 4, "nobody.jpg 0", "line 4 names nobody.jpg"),
    ],
)
def test_faults_are_named_with_file_and_line(
    folder: Path, cache: Path, file: str, line: int, text: str, why: str
) -> None:
    lines = (folder / file).read_text().splitlines()
    lines[line - 1] = text
    (folder / file).write_text("\n".join(lines) + "\n")
    split = {PARTITION: "official-train", TRAINING: "mafl-train"}.get(file, "train")
    with pytest.raises(DataError) as error:
        CelebA(folder, split, cache=cache)
    assert error.value.what == str(folder / file) and why in error.value.why and error.value.fix


@pytest.mark.parametrize("file", [LANDMARK_FILE, BOX_FILE, PARTITION, TRAINING, TESTING])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\xfa"])
def test_missing_empty_and_binary_files(folder: Path, cache: Path, file: str, content: bytes | None) -> None:
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    split = {PARTITION: "official-train", TRAINING: "mafl-train"}.get(file, "train")
    with pytest.raises(DataError, match=Path(file).name):
        CelebA(folder, split, cache=cache)


def test_missing_and_damaged_images(folder: Path, cache: Path) -> None:
    picture = folder / "img_celeba" / file_name(4)
    whole = picture.read_bytes()
    picture.unlink()
    with pytest.raises(DataError, match=r"000004\.jpg"):
        CelebA(folder, cache=cache)
    picture.write_bytes(whole[: len(whole) // 2])
    data = CelebA(folder, cache=cache)
    with pytest.raises(DataError, match=r"000004\.jpg"):
        data.image(numbers(data).index(4))


def test_settings_that_cannot_be_used(folder: Path, cache: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'mafl-train'"):
        CelebA(folder, "mafl-trian", cache=cache)
    with pytest.raises(UsageError):
        CelebA(folder, min_face=30, cache=cache)
    with pytest.raises(DataError, match="img_celeba"):
        CelebA(folder / "Anno", cache=cache)
