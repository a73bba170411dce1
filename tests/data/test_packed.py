"""Packed files: what goes in comes out, in any process, and a damaged or foreign file is refused in plain words."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tusk.data import packed_writer
from tusk.data.dataset import Attribute, Dataset, Truth, UInt8Array
from tusk.data.packed import PackedDataset, PackedWriter, Provenance, write_packed
from tusk.errors import DataError, UsageError

MADE = Provenance("a test", seed=7)
KINDS = ("round", "square")


class Listed:
    """A dataset that is a list."""

    name = "listed"
    class_names = ("a", "b", "c")

    def __init__(self, images: Sequence[UInt8Array], truths: Sequence[Truth | None]) -> None:
        self.images, self.truths = images, truths

    def __len__(self) -> int:
        return len(self.images)

    def image(self, index: int) -> UInt8Array:
        return self.images[index]

    def truth(self, index: int) -> Truth | None:
        return self.truths[index]


def some_truth(rng: np.random.Generator, things: int, shape: tuple[int, int] = (6, 5)) -> Truth:
    points = rng.normal(size=(things, 2)).astype(np.float32)
    points[rng.random(things) < 0.3] = np.nan
    return Truth(
        points=points,
        boxes=rng.normal(size=(max(0, things - 1), 4)).astype(np.float32),  # as many as there are points, or not
        classes=rng.integers(0, 3, things),
        mask=rng.integers(0, 5, shape).astype(np.uint8),
        attributes={"kind": Attribute(rng.integers(0, 2, things), KINDS)},
    )


def some(counts: Sequence[int | None], seed: int = 0) -> Listed:
    rng = np.random.default_rng(seed)
    images = [rng.integers(0, 256, (6, 5, 3)).astype(np.uint8) for _ in counts]
    return Listed(images, [None if count is None else some_truth(rng, count) for count in counts])


def assert_same_truth(found: Truth | None, wanted: Truth | None) -> None:
    if wanted is None or found is None:
        assert found is wanted
        return
    for name in ("points", "boxes", "classes", "mask"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert (one is None) == (other is None), name
        if other is not None:
            assert one.dtype == other.dtype, name
            np.testing.assert_array_equal(one, other)
    assert found.attributes.keys() == wanted.attributes.keys()
    for name, attribute in wanted.attributes.items():
        assert found.attributes[name].names == attribute.names
        np.testing.assert_array_equal(found.attributes[name].values, attribute.values)


def assert_same(found: Dataset, wanted: Dataset) -> None:
    assert len(found) == len(wanted)
    for index in range(len(wanted)):
        np.testing.assert_array_equal(found.image(index), wanted.image(index))
        assert_same_truth(found.truth(index), wanted.truth(index))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.none() | st.integers(0, 6), min_size=1, max_size=9), block=st.integers(1, 4))
def test_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: list[int | None], block: int) -> None:
    """Any numbers of things, unknown ones among them, in several blocks that grow wider."""
    monkeypatch.setattr(packed_writer, "_BLOCK_ROWS", block)
    wanted = some(counts)
    path = write_packed(tmp_path / "some.h5", wanted, provenance=MADE)
    with PackedDataset(path) as found:
        assert isinstance(found, Dataset)
        assert (found.name, found.class_names) == ("listed", ("a", "b", "c"))
        assert_same(found, wanted)
        assert found.counts().tolist() == [count or 0 for count in counts]


@pytest.mark.parametrize(
    "truths",
    [
        [None, None],
        [Truth(mask=np.ones((6, 5), np.uint8)), Truth(mask=np.zeros((6, 5), np.uint8))],
        [Truth(classes=np.array([2])), Truth(classes=np.array([], np.int64))],
    ],
)
def test_only_what_is_known_is_stored(tmp_path: Path, truths: list[Truth | None]) -> None:
    wanted = Listed(some([0, 0]).images, truths)
    path = write_packed(tmp_path / "some.h5", wanted, provenance=MADE)
    assert_same(PackedDataset(path), wanted)
    with h5py.File(path) as file:
        assert "points" not in file


def test_layout_is_as_documented(tmp_path: Path) -> None:
    path = write_packed(tmp_path / "some.h5", some([1, 3, 2]), provenance=MADE)
    with h5py.File(path) as file:
        shapes = {name: file[name].shape for name in ("images", "masks", "points", "boxes", "classes")}
        assert shapes == {
            "images": (3, 6, 5, 3),
            "masks": (3, 6, 5),
            "points": (3, 3, 2),
            "boxes": (3, 2, 4),
            "classes": (3, 3),
        }
        assert file["images"].chunks == (1, 6, 5, 3)
        assert np.isnan(file["points"][0, 1:]).all()
        assert (file["classes"][0, 1:] == -1).all()
        assert (file["attributes/kind"][2, 2:] == -1).all()
        assert json.loads(file["attributes/kind"].attrs["names"]) == list(KINDS)
        assert file.attrs["format"] == "tusk-packed"
        made = json.loads(file.attrs["provenance"])
    assert (made["generator"], made["seed"], made["count"]) == ("a test", 7, 3)
    assert made["tusk_version"]
    assert PackedDataset(path).provenance.count == 3


def test_progress_and_file_name(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = write_packed(
        tmp_path / "new folder" / "some.h5", some([1, 1]), provenance=MADE, progress=lambda *step: seen.append(step)
    )
    assert seen == [(1, 2), (2, 2)]
    assert [entry.name for entry in path.parent.iterdir()] == ["some.h5"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = write_packed(tmp_path / "some.h5", some([1]), provenance=MADE)
    before = path.read_bytes()
    with (
        pytest.raises(KeyboardInterrupt),
        PackedWriter(path, name="other", provenance=MADE) as writer,
    ):
        writer.append(np.zeros((6, 5, 3), np.uint8), None)
        raise KeyboardInterrupt
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_writer_keeps_a_copy(tmp_path: Path) -> None:
    buffer = np.zeros((6, 5, 3), np.uint8)
    with PackedWriter(tmp_path / "some.h5", name="x", provenance=MADE) as writer:
        for value in (1, 2):
            buffer[:] = value
            writer.append(buffer, None)
    found = PackedDataset(tmp_path / "some.h5")
    assert [found.image(index).max() for index in range(2)] == [1, 2]


def test_what_cannot_be_packed(tmp_path: Path) -> None:
    images = some([0, 0]).images
    wrong = {
        "one size": Listed([images[0], images[1][:4]], [None, None]),
        "uint8": Listed([images[0].astype(float)], [None]),
        "same kinds": Listed(images, [Truth(classes=np.array([1])), Truth(mask=np.zeros((6, 5), np.uint8))]),
        "per pixel": Listed(images, [Truth(mask=np.zeros((5, 6), np.uint8)), None]),
        "see tusk": Listed(images, [Truth(points=np.zeros((3, 3), np.float32)), None]),
        "at least one": Listed([], []),
    }
    for fix, dataset in wrong.items():
        with pytest.raises(DataError, match=fix):
            write_packed(tmp_path / "some.h5", dataset, provenance=MADE)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        write_packed(tmp_path / "file" / "some.h5", some([1]), provenance=MADE)


def test_rows_and_indices(tmp_path: Path) -> None:
    wanted = some([0, 1, 2, 3, 4])
    whole = PackedDataset(write_packed(tmp_path / "some.h5", wanted, provenance=MADE))
    part = whole.subset([4, 1, 2])
    assert len(part) == 3
    np.testing.assert_array_equal(part.image(0), wanted.image(4))
    np.testing.assert_array_equal(part.image(-1), wanted.image(2))
    assert_same_truth(part.truth(np.int64(1)), wanted.truth(1))
    assert part.counts().tolist() == [4, 1, 2]
    assert part.subset([2, 0]).counts().tolist() == [2, 4]
    for dataset, index in ((whole, 5), (whole, -6), (part, 3)):
        with pytest.raises(IndexError):
            dataset.image(index)
        with pytest.raises(IndexError):
            dataset.truth(index)
    with pytest.raises(DataError, match="holds 5 images"):
        PackedDataset(tmp_path / "some.h5", [5])


def test_truth_may_be_changed_without_harm(tmp_path: Path) -> None:
    found = PackedDataset(write_packed(tmp_path / "some.h5", some([2]), provenance=MADE))
    first = found.truth(0)
    assert first is not None and first.classes is not None
    first.classes[:] = 99
    second = found.truth(0)
    assert second is not None and second.classes is not None and second.classes.max() < 99


def checksums(dataset: PackedDataset, indices: list[int]) -> list[int]:
    truths = [dataset.truth(index) for index in indices]
    return [
        int(dataset.image(index).astype(np.int64).sum()) * 1000 + len(truth.points)
        for index, truth in zip(indices, truths, strict=True)
        if truth is not None and truth.points is not None
    ]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_several_processes_read_the_same(tmp_path: Path, method: str) -> None:
    found = PackedDataset(write_packed(tmp_path / "some.h5", some([index % 4 for index in range(40)]), provenance=MADE))
    indices = list(range(40))
    wanted = checksums(found, indices)  # the file is open here before it is passed on or forked
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        jobs = [pool.submit(checksums, found, indices[start::4]) for start in range(4)]
        assert [job.result() for job in jobs] == [wanted[start::4] for start in range(4)]
    assert checksums(found, indices) == wanted


def test_a_forked_process_opens_the_file_anew(tmp_path: Path) -> None:
    wanted = some([1] * 30)
    found = PackedDataset(write_packed(tmp_path / "some.h5", wanted, provenance=MADE))
    found.image(0)  # open before the fork, so that the children inherit it
    context = multiprocessing.get_context("fork")

    def read() -> None:
        assert_same(found, wanted)

    children = [context.Process(target=read) for _ in range(3)]
    for child in children:
        child.start()
    assert_same(found, wanted)
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]


def test_pickled_and_closed(tmp_path: Path) -> None:
    wanted = some([1, 2])
    found = PackedDataset(write_packed(tmp_path / "some.h5", wanted, provenance=MADE)).subset([1])
    found.truth(0)
    copy = pickle.loads(pickle.dumps(found))
    assert_same_truth(copy.truth(0), wanted.truth(1))
    found.close()
    np.testing.assert_array_equal(found.image(0), wanted.image(1))


def test_files_that_are_not_packed_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.h5"
    with pytest.raises(DataError, match="is not a file"):
        PackedDataset(path)
    path.write_text("not HDF5")
    with pytest.raises(DataError, match="cannot be opened as HDF5"):
        PackedDataset(path)
    with h5py.File(path, "w") as file:
        file["images"] = np.zeros((2, 6, 5, 3), np.uint8)
    with pytest.raises(DataError, match="not a packed dataset of tusk"):
        PackedDataset(path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UsageError, match=r"tusk-keypoints\[data\]"):
        PackedDataset(path)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = write_packed(tmp_path / "some.h5", some([1]), provenance=MADE)
    with h5py.File(path, "a") as file:
        file.attrs["version"] = 2
    with pytest.raises(DataError, match=r"version 2; this tusk reads up to 1.*update tusk"):
        PackedDataset(path)


@pytest.mark.parametrize("name", ["images", "known", "counts/points", "attributes/kind", "masks"])
def test_a_part_of_the_wrong_shape_is_refused(tmp_path: Path, name: str) -> None:
    path = write_packed(tmp_path / "some.h5", some([1, 2]), provenance=MADE)
    with h5py.File(path, "a") as file:
        del file[name]
        file[name] = np.zeros((3, 2, 2, 2), np.uint8)
    with pytest.raises(DataError, match="make it again"):
        PackedDataset(path)


@pytest.mark.parametrize("name", ["class_names", "provenance", "version", "dataset"])
def test_a_missing_or_broken_attribute_is_refused(tmp_path: Path, name: str) -> None:
    path = write_packed(tmp_path / "some.h5", some([1, 2]), provenance=MADE)
    with h5py.File(path, "a") as file:
        del file.attrs[name]
    with pytest.raises(DataError, match="make it again"):
        PackedDataset(path)


def test_a_damaged_image_is_found(tmp_path: Path) -> None:
    wanted = some([1, 2])
    path = write_packed(tmp_path / "some.h5", wanted, provenance=MADE)
    whole = path.read_bytes()
    with h5py.File(path) as file:
        chunk = file["images"].id.get_chunk_info(1)
    for place in range(chunk.byte_offset, chunk.byte_offset + chunk.size):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        found = PackedDataset(path)
        np.testing.assert_array_equal(found.image(0), wanted.image(0))
        with pytest.raises(DataError, match=r"images\[1\] cannot be read"):
            found.image(1)


def test_damage_is_found_not_passed_on(tmp_path: Path) -> None:
    """Whatever byte is wrong, the pixels are right or there is an error that names the file."""
    rng = np.random.default_rng(0)
    wanted = some([1, 2, 3])
    path = write_packed(tmp_path / "some.h5", wanted, provenance=MADE)
    whole = path.read_bytes()
    errors = 0
    for place in rng.integers(0, len(whole), 250):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            found = PackedDataset(path)
            for index in range(3):
                np.testing.assert_array_equal(found.image(index), wanted.image(index))
        except DataError as error:
            assert error.what == str(path)
            errors += 1
    assert errors > 10
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            PackedDataset(path)
