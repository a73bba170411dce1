"""CLEVR: a folder of scenes, and the original TFRecord file with its crop, its filter and its splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.data.formats import tfrecord_writer as writer
from tusk.data.dataset import Dataset, Truth, UInt8Array
from tusk.data.datasets.clevr_original import read_clevr, rows_of_split
from tusk.data.datasets.clevr_scenes import ClevrScenes
from tusk.data.framing import Framed, Framing
from tusk.errors import DataError, UsageError

# --- a folder of scenes ---

# Three squares by top, left and side, on 24 x 24 pixels; the fourth object is hidden altogether.
SQUARES = [(2, 2, 6), (10, 4, 8), (12, 16, 4)]


def thing(**changed: Any) -> dict[str, Any]:
    base = {"shape": "cube", "color": "gray", "size": "large", "material": "rubber", "pixel": [12.0, 12.0, 9.0]}
    return {**base, "x": 0.1, "y": 0.2, "z": 0.7, "rotation": 0.5, **changed}


SCENE = [
    thing(pixel=[5.0, 5.0, 8.1]),
    thing(pixel=[8.0, 14.0, 9.1], shape="sphere", color="yellow", size="small", material="metal"),
    thing(pixel=[18.0, 14.0, 9.2], shape="cylinder", color="cyan"),
    thing(pixel=[7.0, 15.0, 10.0], shape="sphere"),
]


def drawn() -> tuple[UInt8Array, UInt8Array]:
    image, mask = np.full((24, 24, 3), 90, np.uint8), np.zeros((24, 24), np.uint8)
    for number, (top, left, side) in enumerate(SQUARES, start=1):
        image[top : top + side, left : left + side] = (40 * number, 250 - 40 * number, 130)
        mask[top : top + side, left : left + side] = number
    return image, mask


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image, mask = drawn()
    for name in ("images", "masks", "scenes"):
        (tmp_path / name).mkdir()
    for name, suffix in (("000", "png"), ("001", "jpg"), ("002", "png")):
        Image.fromarray(np.roll(image, int(name), axis=1)).save(tmp_path / "images" / f"{name}.{suffix}")
        Image.fromarray(np.roll(mask, int(name), axis=1)).save(tmp_path / "masks" / f"{name}.png")
        (tmp_path / "scenes" / f"{name}.json").write_text(json.dumps(SCENE))
    (tmp_path / "images" / "notes.txt").write_text("not an image")
    (tmp_path / "splits.json").write_text(json.dumps({"train": ["002", "000"], "test": ["001"], "none": []}))
    return tmp_path


def truth_of(dataset: Dataset, index: int) -> tuple[Any, Any, Any, Truth]:
    truth = dataset.truth(index)
    assert truth is not None and truth.points is not None and truth.boxes is not None and truth.mask is not None
    return truth.points, truth.boxes, truth.mask, truth


def named(truth: Truth, name: str) -> list[str]:
    return [truth.attributes[name].names[value] for value in truth.attributes[name].values]


def test_a_folder_as_it_is(folder: Path) -> None:
    dataset = ClevrScenes(folder)
    assert isinstance(dataset, Dataset)
    assert len(dataset) == 3
    image, mask = drawn()
    np.testing.assert_array_equal(dataset.image(0), image)
    points, boxes, found, truth = truth_of(dataset, 0)
    np.testing.assert_array_equal(found, mask)
    # `pixel` counts from the corner of the image, points from the centre of its first pixel.
    np.testing.assert_array_equal(points[:3], np.array([[4.5, 4.5], [7.5, 13.5], [17.5, 13.5]], np.float32))
    for number, (top, left, side) in enumerate(SQUARES):
        assert boxes[number].tolist() == [left - 0.5, top - 0.5, left + side - 0.5, top + side - 0.5]
        rows, columns = np.nonzero(mask == number + 1)
        assert points[number].tolist() == [columns.mean(), rows.mean()]
    assert named(truth, "shape") == ["cube", "sphere", "cylinder", "sphere"]
    assert named(truth, "color") == ["gray", "yellow", "cyan", "gray"]
    assert named(truth, "size") == ["large", "small", "large", "large"]
    assert named(truth, "material") == ["rubber", "metal", "rubber", "rubber"]


def test_a_hidden_object_is_listed_but_has_no_place(folder: Path) -> None:
    points, boxes, _, truth = truth_of(ClevrScenes(folder), 0)
    assert np.isnan(points[3]).all() and np.isnan(boxes[3]).all()
    assert len(truth.attributes["shape"].values) == len(points) == 4


def test_splits(folder: Path) -> None:
    train = ClevrScenes(folder, "train")
    np.testing.assert_array_equal(train.image(0), np.roll(drawn()[0], 2, axis=1))
    np.testing.assert_array_equal(train.image(1), drawn()[0])
    assert len(ClevrScenes(folder, "test")) == 1
    with pytest.raises(UsageError, match="did you mean 'train'"):
        ClevrScenes(folder, "trian")
    with pytest.raises(DataError, match="'none' is empty"):
        ClevrScenes(folder, "none")
    (folder / "splits.json").write_text(json.dumps({"train": ["../000", "000"]}))
    with pytest.raises(DataError, match=r"'\.\./000', which is not there"):
        ClevrScenes(folder, "train")
    (folder / "splits.json").unlink()
    with pytest.raises(UsageError, match="leave the split out"):
        ClevrScenes(folder, "train")


@pytest.mark.parametrize("size", [12, 48])
def test_resized(folder: Path, size: int) -> None:
    """Points stay on the same spot: the squares have even sides, so that their centres scale exactly."""
    dataset = Framed(ClevrScenes(folder), Framing(size))
    assert dataset.image(0).shape == (size, size, 3)
    points, boxes, mask, _ = truth_of(dataset, 0)
    assert mask.shape == (size, size) and set(np.unique(mask)) == {0, 1, 2, 3}
    for number in range(3):
        rows, columns = np.nonzero(mask == number + 1)
        assert points[number].tolist() == [columns.mean(), rows.mean()]
        edges = [columns.min() - 0.5, rows.min() - 0.5, columns.max() + 0.5, rows.max() + 0.5]
        assert boxes[number].tolist() == edges
    # In the middle of a square the colour is the square's own, but for a trace of the bicubic filter's ringing.
    x, y = np.rint(points[1]).astype(int)
    np.testing.assert_allclose(dataset.image(0)[y, x], [80, 170, 130], atol=3)


def test_a_crop_keeps_the_ratio_of_sides_and_what_it_cuts_off_has_no_place(folder: Path) -> None:
    for kind in ("images", "masks"):
        Image.open(folder / kind / "000.png").crop((0, 0, 24, 16)).save(folder / kind / "000.png")
    dataset = Framed(ClevrScenes(folder), Framing(8))  # columns 4 to 19, rows 0 to 15, halved
    points, _, mask, _ = truth_of(dataset, 0)
    np.testing.assert_allclose(points[:2], [[0.0, 2.0], [1.5, 6.5]], atol=1e-6)
    assert mask[6, 2] == 2 and set(np.unique(mask)) == {0, 1, 2, 3}
    narrow = Framed(ClevrScenes(folder), Framing(8, "letterbox"))
    assert narrow.image(0).shape == (8, 8, 3) and not narrow.image(0)[0].any()
    points, _, mask, _ = truth_of(narrow, 0)
    assert not mask[:1].any() and not mask[6:].any() and not np.isnan(points[:3]).any()


def test_shrinking_does_not_alias(folder: Path) -> None:
    stripes = np.zeros((24, 24, 3), np.uint8)
    stripes[:, ::2] = 200
    Image.fromarray(stripes).save(folder / "images" / "000.png")
    small = Framed(ClevrScenes(folder), Framing(6)).image(0)
    assert np.abs(small.astype(int) - 100).max() < 30


def test_a_folder_without_truth(folder: Path) -> None:
    (folder / "masks").rename(folder / "other")
    dataset = ClevrScenes(folder)
    assert dataset.truth(0) is None
    assert dataset.image(0).shape == (24, 24, 3)
    for read in (dataset.image, dataset.truth):
        with pytest.raises(IndexError):
            read(3)


def test_a_palette_mask_is_read_by_its_numbers(folder: Path) -> None:
    picture = Image.fromarray(drawn()[1]).convert("P")
    picture.putdata(drawn()[1].ravel().tolist())
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9])
    picture.save(folder / "masks" / "000.png")
    np.testing.assert_array_equal(truth_of(ClevrScenes(folder), 0)[2], drawn()[1])


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ("{", "is not JSON"),
        ("{}", "is not a list of objects"),
        ("[1, 2, 3, 4]", "is not a list of objects"),
        (json.dumps(SCENE[:2]), "has object 3 where 000.json lists 2"),
        (json.dumps([*SCENE[:3], thing(pixel=None)]), "object 4 has no pixel"),
        (json.dumps([*SCENE[:3], thing(pixel=[1, float("nan")])]), "object 4 has no pixel"),
        (json.dumps([*SCENE[:3], thing(color="gary")]), "the color 'gary'; did you mean 'gray'"),
        (json.dumps([*SCENE[:3], {"pixel": [1, 2, 3]}]), "the shape None"),
    ],
)
def test_a_bad_scene_is_named(folder: Path, scene: str, words: str) -> None:
    (folder / "scenes" / "000.json").write_text(scene)
    with pytest.raises(DataError, match=words):
        ClevrScenes(folder).truth(0)
    assert ClevrScenes(folder).truth(1) is not None


def test_bad_folders_and_files(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(DataError, match="has no folder 'images'"):
        ClevrScenes(empty)
    (empty / "images").mkdir()
    with pytest.raises(DataError, match="holds no JPEG or PNG"):
        ClevrScenes(empty)
    (folder / "masks" / "000.png").write_bytes(b"\x89PNG broken")
    with pytest.raises(DataError, match=r"masks/000\.png"):
        ClevrScenes(folder).truth(0)
    Image.fromarray(drawn()[0]).save(folder / "masks" / "000.png")
    with pytest.raises(DataError, match="grey or palette image"):
        ClevrScenes(folder).truth(0)
    (folder / "masks" / "000.png").unlink()
    with pytest.raises(DataError, match=r"masks/000\.png"):
        ClevrScenes(folder).truth(0)
    (folder / "scenes" / "001.json").unlink()
    with pytest.raises(DataError, match=r"scenes/001\.json"):
        ClevrScenes(folder).truth(1)


# --- the original file ---

CROP = np.s_[29:221, 64:256]


def original(objects: int, seed: int, /, **changed: bytes) -> tuple[bytes, UInt8Array, UInt8Array]:
    """A record as in the original file, the whole image, and the whole mask."""
    rng = np.random.default_rng(seed)
    image = np.full((240, 320, 3), seed, np.uint8)
    image[..., 0] = np.arange(320) % 256
    image[..., 1] = np.arange(240)[:, None]
    masks = np.zeros((11, 240, 320, 1), np.uint8)
    pixels = np.zeros((11, 3), np.float32)
    for entity in range(1, objects + 1):
        # On a grid of their own, six pixels a side, all within the crop, at even places from its corner.
        left, top = 64 + 24 * (entity % 4) + 12, 29 + 60 * (entity // 4) + 6
        masks[entity, top : top + 6, left : left + 6] = 255
        pixels[entity] = left + 3, top + 3, 10
    masks[0, ~masks[1:].any(axis=0)] = 255
    there = np.arange(11) <= objects
    codes = {
        name: np.where(there & (np.arange(11) > 0), rng.integers(1, count + 1, 11), 0)
        for name, count in (("size", 2), ("material", 2), ("shape", 3), ("color", 8))
    }
    numbers = {name: writer.floats(rng.normal(size=11)) for name in ("x", "y", "z", "rotation")}
    features = {
        "image": writer.one_byte_each(image),
        "mask": writer.one_byte_each(masks),
        **{name: writer.one_byte_each(values) for name, values in codes.items()},
        **numbers,
        "visibility": writer.floats(there),
        "pixel_coords": writer.floats(pixels),
    }
    mask = (masks[1:, ..., 0] // 255 * np.arange(1, 11, dtype=np.uint8)[:, None, None]).max(axis=0)
    return writer.example(**{**features, **changed}), image, mask


def test_crop_without_resizing(tmp_path: Path) -> None:
    record, image, mask = original(5, 7)
    path = writer.write_records(tmp_path / "clevr.tfrecords", [record], compress=True)
    before = path.read_bytes()
    dataset = read_clevr(path, size=192)
    np.testing.assert_array_equal(dataset.image(0), image[CROP])
    points, boxes, found, truth = truth_of(dataset, 0)
    np.testing.assert_array_equal(found, mask[CROP])
    for number in range(5):
        rows, columns = np.nonzero(found == number + 1)
        assert points[number].tolist() == [columns.mean(), rows.mean()]
        assert boxes[number, :2].tolist() == [columns.min() - 0.5, rows.min() - 0.5]
    rng = np.random.default_rng(7)
    for name, count in (("size", 2), ("material", 2), ("shape", 3), ("color", 8)):
        assert truth.attributes[name].names == tuple(f"{name} {code}" for code in range(1, count + 1))
        assert named(truth, name) == [f"{name} {code}" for code in rng.integers(1, count + 1, 11)[1:6]]
    assert path.read_bytes() == before


@pytest.mark.parametrize("size", [96, 128])
def test_crop_and_resizing(tmp_path: Path, size: int) -> None:
    record = original(6, 3)[0]
    path = writer.write_records(tmp_path / "clevr.tfrecords", [record], compress=True)
    dataset = read_clevr(path, size=size)
    points, _, mask, _ = truth_of(dataset, 0)
    assert dataset.image(0).shape == (size, size, 3) and mask.shape == (size, size)
    for number in range(6):
        rows, columns = np.nonzero(mask == number + 1)
        np.testing.assert_allclose(points[number], [columns.mean(), rows.mean()], atol=1e-4)
    # The image is a ramp: a pixel shows the mean of what it covers, wherever the ramp does not wrap round.
    middle = (np.arange(size) + 0.5) * 192 / size - 0.5
    np.testing.assert_allclose(dataset.image(0)[size // 2, 1:-1, 0], 64 + middle[1:-1], atol=1)
    np.testing.assert_allclose(dataset.image(0)[1:-1, size // 2, 1], 29 + middle[1:-1], atol=1)
    assert (dataset.image(0)[..., 2] == 3).all()


def test_an_object_outside_the_crop_is_listed_but_has_no_place(tmp_path: Path) -> None:
    masks = np.zeros((11, 240, 320), np.uint8)
    masks[1, 5:15, 5:15] = 255
    masks[2, 100:110, 100:110] = 255
    record, _, _ = original(2, 0, mask=writer.one_byte_each(masks))
    dataset = read_clevr(writer.write_records(tmp_path / "clevr.tfrecords", [record]))
    points, boxes, _, truth = truth_of(dataset, 0)
    assert np.isnan(points[0]).all() and np.isnan(boxes[0]).all()
    assert not np.isnan(points[1]).any()
    assert len(truth.attributes["color"].values) == 2


def test_the_filter_and_the_splits_of_a_small_file(tmp_path: Path) -> None:
    """Of those with six objects at most: six sevenths train, the rest test; CLEVR10 lies behind the training scenes."""
    counts = [3, 10, 6, 7, 4, 5, 3, 8, 6, 6, 9]
    records = [original(count, seed)[0] for seed, count in enumerate(counts)]
    path = writer.write_records(tmp_path / "clevr.tfrecords", records, compress=True)
    seeds = {
        split: [int(dataset.image(index)[0, 0, 2]) for index in range(len(dataset))]
        for split in ("train", "test", "clevr10")
        for dataset in [read_clevr(path, split, size=16, cache=tmp_path / "cache")]
    }
    assert seeds == {"train": [0, 2, 4, 5, 6, 8], "test": [9], "clevr10": [9, 10]}
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["clevr-16.packed.h5"]


def test_the_splits_of_the_whole_file() -> None:
    counts = np.random.default_rng(0).integers(3, 11, 160_000)
    few = [row for row, count in enumerate(counts.tolist()) if count <= 6][:70_000]
    train, test, ten = (rows_of_split(counts, split).tolist() for split in ("train", "test", "clevr10"))
    assert train == few[:60_000] and test == few[60_000:]
    assert ten == list(range(150_000, 160_000))
    # A file with fewer, as one of 100,000 scenes: the last 10,000 test all the same, the others train.
    counts = counts[:100_000]
    few = [row for row in few if row < 100_000]
    train, test, ten = (rows_of_split(counts, split).tolist() for split in ("train", "test", "clevr10"))
    assert [*train, *test] == few and len(test) == 10_000
    assert min(ten) > max(train)


@pytest.mark.parametrize(
    ("feature", "value", "words"),
    [
        ("color", [0, 1, 2, 9, *[0] * 7], r"a color coded \[1, 2, 9\] where 1 to 8 belong"),
        ("shape", [0, 1, 0, 1, *[0] * 7], r"a shape coded \[1, 0, 1\]"),
        ("size", [0, 1, 1], "feature 'size' has 3 values"),
    ],
)
def test_a_record_that_does_not_fit_is_named(tmp_path: Path, feature: str, value: list[int], words: str) -> None:
    records = [original(3, 0)[0], original(3, 1, **{feature: writer.one_byte_each(value)})[0]]
    path = writer.write_records(tmp_path / "clevr.tfrecords", records)
    with pytest.raises(DataError, match=rf"clevr\.tfrecords, record 1 \(at byte \d+\): .*{words}"):
        read_clevr(path)
    assert list(tmp_path.iterdir()) == [path]


def test_wrong_requests(tmp_path: Path) -> None:
    path = writer.write_records(tmp_path / "clevr.tfrecords", [original(7, 0)[0]])
    with pytest.raises(UsageError, match="did you mean 'clevr10'"):
        read_clevr(path, "clevr1")
    with pytest.raises(UsageError, match="size"):
        read_clevr(path, size=0)
    with pytest.raises(DataError, match="too few for the split 'train'"):
        read_clevr(path)
    assert len(read_clevr(path, "clevr10")) == 1
