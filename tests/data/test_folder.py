"""The folder dataset: which files, in what order, placed where, and decoded only when they have to be."""

from __future__ import annotations

import csv
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

import tusk.data.cache
import tusk.data.folder
from tusk.data.cache import default_cache_dir
from tusk.data.dataset import Dataset
from tusk.data.folder import FolderDataset
from tusk.data.framing import Whole
from tusk.data.images import Picture, read_picture
from tusk.errors import DataError, UsageError, UserError


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Ten pictures, each of one colour: number i is (10 * i, 255 - i, i)."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(10):
        Image.new("RGB", (30 + i, 20), (10 * i, 255 - i, i)).save(folder / f"img{i}.png")
    return folder


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were decoded so far."""
    names: list[str] = []

    def count(path: Path, **options: Any) -> Picture:
        names.append(path.name)
        return read_picture(path, **options)

    monkeypatch.setattr(tusk.data.folder, "read_picture", count)
    return names


def names(dataset: FolderDataset) -> list[str]:
    return [dataset.path(i).name for i in range(len(dataset))]


def listed(dataset: FolderDataset) -> list[tuple[str, str]]:
    with dataset.skipped_csv.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["file", "reason"]
    return [(Path(file).name, reason) for file, reason in rows[1:]]


def test_it_is_a_dataset(photos: Path, tmp_path: Path) -> None:
    dataset = FolderDataset(photos, size=16, cache_dir=tmp_path / "cache")
    assert isinstance(dataset, Dataset)
    assert (dataset.name, dataset.class_names, len(dataset), dataset.truth(3)) == ("photos", (), 10, None)
    for i in range(10):
        assert dataset.image(i).shape == (16, 16, 3)
        assert (dataset.image(i) == [10 * i, 255 - i, i]).all()


def test_patterns_lists_and_single_files(photos: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert names(FolderDataset(f"{photos}/img[135].*", size=8, cache_dir=cache)) == ["img1.png", "img3.png", "img5.png"]
    recursive = FolderDataset(f"{tmp_path}/**/*.png", size=8, cache_dir=cache)
    assert len(recursive) == 10

    (photos / "chosen.txt").write_text(
        "\n# the good ones\nimg7.png\r\n./img2.png\nimg7.png\n" + str(photos / "img5.png")
    )
    chosen = FolderDataset(photos / "chosen.txt", size=8, cache_dir=cache)
    assert (chosen.name, names(chosen)) == ("chosen", ["img7.png", "img2.png", "img5.png"])

    single = FolderDataset(photos / "img4.png", size=8, cache_dir=cache)
    assert (single.name, len(single), single.image(0)[0, 0, 0]) == ("img4", 1, 40)


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a[1].png")
    assert len(FolderDataset(tmp_path / "a[1].png", size=4, cache_dir=tmp_path / "cache")) == 1


def test_sources_with_nothing_in_them(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00\x81")
    for source, reason in {
        "empty": "there are no pictures in it",
        "photos/*.gif": "there are no pictures in it",
        "empty.txt": "there are no pictures in it",
        "nowhere": "there is no such file or folder",
        "binary.txt": "cannot be read as a list",
    }.items():
        with pytest.raises(DataError, match=reason):
            FolderDataset(tmp_path / source, size=8, cache_dir=tmp_path / "cache")
    with pytest.raises(UsageError, match="did you mean 'letterbox'"):
        FolderDataset(photos, size=8, fit="leterbox")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="size 0"):
        FolderDataset(photos, size=0)


def test_unreadable_files_are_listed_and_left_out(photos: Path, tmp_path: Path) -> None:
    (photos / "img3.png").write_bytes(b"")
    (photos / "img4.png").write_bytes((photos / "img5.png").read_bytes()[:40])
    (photos / "all.txt").write_text("\n".join(f"img{i}.png" for i in range(11)))
    for source in (photos, photos / "all.txt"):
        dataset = FolderDataset(source, size=8, cache_dir=tmp_path / "cache")
        reasons = dict(listed(dataset))
        assert len(dataset) == 8
        assert dataset.skipped == len(reasons) == (2 if source == photos else 3)
        assert reasons["img3.png"] == "the file is empty"
        assert "cut short" in reasons["img4.png"]
        assert [int(dataset.image(i)[0, 0, 2]) for i in range(8)] == [0, 1, 2, 5, 6, 7, 8, 9]
    assert reasons["img10.png"] == "there is no such file"


def test_more_than_half_unreadable_stops(photos: Path, tmp_path: Path) -> None:
    for i in range(5):
        (photos / f"img{i}.png").write_bytes(b"")
    dataset = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
    assert (len(dataset), dataset.skipped) == (5, 5)
    (photos / "img5.png").write_bytes(b"")
    with pytest.raises(
        DataError, match=r"6 of 10 pictures cannot be read \(the first is img0.png: the file is empty\)"
    ):
        FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
    assert len(dataset.skipped_csv.read_text().splitlines()) == 7


def test_the_second_time_nothing_is_decoded(photos: Path, tmp_path: Path, decoded: list[str]) -> None:
    seen: list[tuple[int, int]] = []
    first = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache", progress=lambda *at: seen.append(at))
    assert sorted(decoded) == [f"img{i}.png" for i in range(10)]
    assert seen == [(done, 10) for done in range(11)]
    decoded.clear()
    seen.clear()
    second = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache", progress=lambda *at: seen.append(at))
    assert decoded == []
    assert seen == [(10, 10)]
    assert all(np.array_equal(first.image(i), second.image(i)) for i in range(10))
    for options in ({"size": 9}, {"size": 8, "fit": "letterbox"}, {"size": 8, "grey": True}):
        FolderDataset(photos, cache_dir=tmp_path / "cache", **options)
    assert len(decoded) == 30


def test_only_what_changed_is_decoded_again(photos: Path, tmp_path: Path, decoded: list[str]) -> None:
    FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
    decoded.clear()
    Image.new("RGB", (99, 70), "red").save(photos / "img4.png")
    os.utime(photos / "img6.png", ns=(1, 1))
    Image.new("RGB", (5, 5), "blue").save(photos / "img2b.png")
    (photos / "img9.png").unlink()
    dataset = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
    assert sorted(decoded) == ["img2b.png", "img4.png", "img6.png"]
    assert names(dataset) == [f"img{i}.png" for i in ("0", "1", "2", "2b", "3", "4", "5", "6", "7", "8")]
    assert (dataset.image(5) == [255, 0, 0]).all()
    assert (dataset.image(3) == [0, 0, 255]).all()
    assert [int(dataset.image(i)[0, 0, 2]) for i in (0, 1, 2, 4, 6, 7, 8, 9)] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_an_interrupted_build_goes_on(
    photos: Path, tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tusk.data.cache, "_SHARD_IMAGES", 3)

    def stop(done: int, _: int) -> None:
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FolderDataset(photos, size=8, cache_dir=tmp_path / "cache", progress=stop)
    decoded.clear()
    dataset = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
    assert sorted(decoded) == ["img6.png", "img7.png", "img8.png", "img9.png"]
    assert [int(dataset.image(i)[0, 0, 2]) for i in range(10)] == list(range(10))


def test_a_damaged_cache_is_built_again(photos: Path, tmp_path: Path, decoded: list[str]) -> None:
    folder = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache").skipped_csv.parent
    (shard,) = folder.glob("*.npy")
    (index,) = folder.glob("*.json")
    whole, entries = shard.read_bytes(), index.read_bytes()
    (folder / "unfinished-x").write_bytes(b"remains of a process that was killed")
    os.utime(folder / "unfinished-x", (1, 1))
    for damage in (
        lambda: shard.write_bytes(whole[:-100]),
        lambda: shard.write_bytes(b""),
        shard.unlink,
        lambda: np.save(shard, np.zeros((3, 8, 8, 3), np.uint8)),
        lambda: index.write_bytes(entries[:-5]),
        lambda: index.write_bytes(b"[[1, 2]]"),
        index.unlink,
    ):
        decoded.clear()
        damage()
        dataset = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
        assert len(decoded) == 10
        assert [int(dataset.image(i)[0, 0, 2]) for i in range(10)] == list(range(10))
    assert sorted(path.name for path in folder.iterdir()) == sorted([shard.name, index.name, "skipped.csv"])


BUILD = """
import hashlib, sys
from pathlib import Path
import tusk.data.cache
tusk.data.cache._SHARD_IMAGES = int(sys.argv[3])
from tusk.data.folder import FolderDataset
dataset = FolderDataset(sys.argv[1], size=24, cache_dir=Path(sys.argv[2]))
print(hashlib.sha256(b"".join(dataset.image(i).tobytes() for i in range(len(dataset)))).hexdigest())
"""


def test_processes_that_build_at_once_agree(tmp_path: Path, decoded: list[str]) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for i in range(120):
        Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)).save(tmp_path / "photos" / f"{i}.png")
    command = [sys.executable, "-c", BUILD, str(tmp_path / "photos"), str(tmp_path / "cache")]
    running = [subprocess.Popen([*command, size], stdout=subprocess.PIPE, text=True) for size in ("7", "7", "11")]
    digests = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(digests[0]) == 65
    assert len(set(digests)) == 1
    dataset = FolderDataset(tmp_path / "photos", size=24, cache_dir=tmp_path / "cache")
    assert decoded == []
    original = Image.open(tmp_path / "photos" / "7.png")
    expected = original.resize((24, 24), Image.Resampling.BICUBIC, box=(5, 0, 35, 30))
    assert np.array_equal(dataset.image(7), np.asarray(expected))


def test_files_are_not_touched(photos: Path, tmp_path: Path) -> None:
    def state() -> list[tuple[str, int, bytes]]:
        return [(path.name, path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(photos.iterdir())]

    before = state()
    FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
    assert state() == before


def test_the_cache_folder(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir() == tmp_path / "xdg" / "tusk"
    assert FolderDataset(photos, size=8).skipped_csv.is_relative_to(tmp_path / "xdg" / "tusk")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache_dir() == Path.home() / ".cache" / "tusk"
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"the cache cannot be written .*name another folder"):
        FolderDataset(photos, size=8, cache_dir=tmp_path / "file")


def test_a_pickled_dataset_opens_its_own_maps(photos: Path, tmp_path: Path) -> None:
    dataset = FolderDataset(photos, size=64, cache_dir=tmp_path / "cache")
    dataset.image(0)
    data = pickle.dumps(dataset)
    assert len(data) < 10 * 64 * 64 * 3
    assert np.array_equal(pickle.loads(data).image(7), dataset.image(7))
    for shard in dataset.skipped_csv.parent.glob("*.npy"):
        shard.unlink()
    with pytest.raises(DataError, match="start again"):
        pickle.loads(data).image(7)


def test_grey(tmp_path: Path) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = FolderDataset(tmp_path / "a.png", size=16, grey=True, cache_dir=tmp_path / "cache").image(0)
    assert image.shape == (16, 16, 3)
    assert np.array_equal(image, np.asarray(Image.fromarray(pixels).convert("L").convert("RGB")))


def test_random_crops_follow_seed_and_name_alone(tmp_path: Path) -> None:
    for i in range(20):
        columns = np.broadcast_to(np.arange(100, dtype=np.uint8)[None, :, None], (20, 100, 3))
        Image.fromarray(np.ascontiguousarray(columns)).save(tmp_path / f"{i}.png")

    def crops(seed: int) -> list[int]:
        dataset = FolderDataset(tmp_path, size=20, fit="random-crop", seed=seed, cache_dir=tmp_path / "cache")
        for i in range(len(dataset)):
            assert dataset.image(i)[0, 0, 0] == dataset.placement(i).left  # the pixels tell their own column
        return [int(dataset.image(i)[0, 0, 0]) for i in range(len(dataset))]

    first = crops(0)
    assert len(set(first)) > 8
    assert crops(0) == first != crops(1)
    (tmp_path / "3.png").unlink()
    assert crops(0) == first[:3] + first[4:]


def test_letterbox_is_black_around_and_whole_inside(tmp_path: Path) -> None:
    Image.new("RGB", (60, 20), "white").save(tmp_path / "a.png")
    Image.new("RGB", (1, 3000), "white").save(tmp_path / "b.png")
    dataset = FolderDataset(tmp_path, size=30, fit="letterbox", cache_dir=tmp_path / "cache")
    white = dataset.image(0)[:, :, 0] == 255
    assert white[10:20].all() and not dataset.image(0)[:10].any() and not dataset.image(0)[20:].any()
    assert (dataset.image(1)[:, :, 0] == 255).sum() == 30
    cropped = FolderDataset(tmp_path, size=30, cache_dir=tmp_path / "cache")
    assert (cropped.image(1) == 255).all()


def test_a_shrunk_and_turned_photograph_lands_where_its_placement_says(tmp_path: Path) -> None:
    pixels = np.zeros((903, 1207, 3), np.uint8)
    pixels[300:340, 700:740] = 255
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down: the dot is seen at the opposite place
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif, quality=95)
    seen = np.array([1207 - 1 - 719.5, 903 - 1 - 319.5])
    for fit in get_args(Whole):
        dataset = FolderDataset(tmp_path / "a.jpg", size=50, fit=fit, cache_dir=tmp_path / "cache", seed=4)
        weight = dataset.image(0)[:, :, 0].astype(float)
        rows, columns = np.mgrid[0:50, 0:50]
        centre = np.array([(columns * weight).sum(), (rows * weight).sum()]) / weight.sum()
        assert np.abs(dataset.placement(0).to_original(centre) - seen).max() < 2


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder whose listing fails."""
    folder = tmp_path / "photos" / "closed"
    folder.mkdir()
    yield folder


def test_a_folder_that_cannot_be_listed_is_named(
    photos: Path, closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuse(path: str) -> Any:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    dataset = FolderDataset(photos, size=8, cache_dir=tmp_path / "cache")
    assert (len(dataset), listed(dataset)) == (10, [("closed", "the folder cannot be read (Permission denied)")])


def test_tiles_are_the_pictures_own_pixels(tmp_path: Path, decoded: list[str]) -> None:
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    pictures = {name: rng.integers(0, 256, shape, dtype=np.uint8) for name, shape in _SHAPES.items()}
    for name, pixels in pictures.items():
        Image.fromarray(pixels).save(tmp_path / "photos" / name)

    def opened(**options: Any) -> FolderDataset:
        return FolderDataset(tmp_path / "photos", size=16, fit="tiles", cache_dir=tmp_path / "cache", **options)

    dataset = opened()
    assert names(dataset) == ["a.png"] * 2 * 3 + ["b.png"] + ["c.png"] * 2
    for i in range(len(dataset)):
        placement, pixels = dataset.placement(i), pictures[dataset.path(i).name]
        expected = np.zeros((16, 16, 3), np.uint8)
        left, top = int(placement.left), int(placement.top)
        part = pixels[top : top + 16, left : left + 16]
        expected[placement.row : placement.row + len(part), placement.column :][:, : part.shape[1]] = part
        np.testing.assert_array_equal(dataset.image(i), expected)
    decoded.clear()
    again = opened()
    assert decoded == [] and len(again) == len(dataset)
    assert len(opened(scale=0.5)) == 2 + 1 + 1

    # A shard that is gone takes all tiles of its pictures with it, not some.
    for index in (tmp_path / "cache").glob("*/*.json"):
        index.unlink()
    decoded.clear()
    assert len(opened()) == len(dataset) and sorted(decoded) == sorted(_SHAPES)


_SHAPES = {"a.png": (20, 40, 3), "b.png": (16, 9, 3), "c.png": (17, 16, 3)}


def test_tiles_of_many_pictures_fill_several_shards(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tusk.data.cache, "_SHARD_IMAGES", 7)
    dataset = FolderDataset(photos, size=8, fit="tiles", cache_dir=tmp_path / "cache")
    assert len(dataset) == sum(-(-(30 + i) // 8) * 3 for i in range(10))
    for i in range(len(dataset)):
        number = int(dataset.path(i).stem[3:])
        assert (dataset.image(i) == [10 * number, 255 - number, number]).all()


def test_full_contrast_is_that_of_the_whole_picture(tmp_path: Path) -> None:
    """Its two tiles keep the difference between them."""
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, :8], pixels[:, 8:] = 60, 110
    pixels[:, 12:] = 160
    Image.fromarray(pixels).save(tmp_path / "a.png")
    dataset = FolderDataset(tmp_path / "a.png", size=8, fit="tiles", contrast="full", cache_dir=tmp_path / "cache")
    assert np.unique(dataset.image(0)).tolist() == [0]
    assert np.unique(dataset.image(1)).tolist() == [128, 255]
