"""The order of images: the same with any number of workers, after a resume, and shared out over processes."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tusk.data.dataset import Truth, UInt8Array
from tusk.data.folder import FolderDataset
from tusk.data.loader import Loader, Order
from tusk.errors import DataError, UsageError, UserError


class Numbers:
    """Image i holds the number i; some of them misbehave on demand."""

    name = "numbers"
    class_names: tuple[str, ...] = ()

    def __init__(self, count: int, *, odd: int = -1, bad: int = -1, deadly: int = -1) -> None:
        self.count, self.odd, self.bad, self.deadly = count, odd, bad, deadly

    def __len__(self) -> int:
        return self.count

    def image(self, index: int) -> UInt8Array:
        if index == self.bad:
            raise DataError("numbers.bin", "the number is missing", "write it again")
        if index == self.deadly:
            os._exit(1)
        return np.full((2, 4 if index == self.odd else 3, 3), index, np.uint8)

    def truth(self, index: int) -> Truth | None:  # noqa: ARG002
        return None


def taken(loader: Loader, batches: int) -> list[int]:
    with loader:
        return [int(index) for batch in islice(loader, batches) for index in batch.indices]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> FolderDataset:
    folder = tmp_path_factory.mktemp("loader")
    rng = np.random.default_rng(1)
    (folder / "photos").mkdir()
    for i in range(23):
        Image.fromarray(rng.integers(0, 256, (12, 15, 3), dtype=np.uint8)).save(folder / "photos" / f"{i}.png")
    return FolderDataset(folder / "photos", size=10, cache_dir=folder / "cache")


def digests(photos: FolderDataset, batches: int, *, workers: int = 0, position: int = 0) -> list[str]:
    with Loader(photos, batch=5, seed=3, workers=workers, position=position) as loader:
        given = list(islice(loader, batches))
    assert [batch.position for batch in given] == list(range(position, position + batches))
    contents = [batch.images.numpy().tobytes() + batch.indices.numpy().tobytes() for batch in given]
    return [hashlib.sha256(content).hexdigest() for content in contents]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [1, 4])
def test_the_same_bytes_with_any_number_of_workers(photos: FolderDataset, workers: int) -> None:
    assert digests(photos, 12, workers=workers) == digests(photos, 12)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_resumed_loader_goes_on_in_the_middle_of_an_epoch(photos: FolderDataset, workers: int, stop: int) -> None:
    unbroken = digests(photos, 12)
    with Loader(photos, batch=5, seed=3, workers=workers) as loader:
        for _ in range(stop):
            next(loader)
        position = loader.position
    assert position == stop
    assert digests(photos, 12 - stop, workers=workers, position=position) == unbroken[stop:]


def test_a_batch_holds_the_images_that_it_names(photos: FolderDataset) -> None:
    with Loader(photos, batch=6, seed=0) as loader:
        batch = next(loader)
    assert batch.images.dtype == torch.uint8
    assert batch.images.shape == (6, 3, 10, 10)
    assert batch.indices.dtype == torch.int64
    for image, index in zip(batch.images, batch.indices, strict=True):
        assert np.array_equal(image.permute(1, 2, 0).numpy(), photos.image(int(index)))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 2**40))
def test_every_image_comes_once_in_every_epoch(count: int, batch: int, seed: int) -> None:
    order = Order(count, batch, seed)
    batches = -(-4 * count // batch)
    row = np.concatenate([order.indices(position) for position in range(batches)])
    for epoch in range(4):
        assert sorted(row[epoch * count : (epoch + 1) * count]) == list(range(count))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 5), st.integers(0, 30))
def test_processes_share_every_batch(count: int, share: int, world: int, position: int) -> None:
    whole = Order(count, share * world, 9).indices(position)
    parts = [Order(count, share * world, 9, rank, world).indices(position) for rank in range(world)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert {len(part) for part in parts} == {share}


def test_epochs_and_seeds_differ() -> None:
    row = taken(Loader(Numbers(50), batch=50, seed=0), 3)
    assert row[:50] != row[50:100] != row[100:]
    assert row[:50] != list(range(50))
    assert row != taken(Loader(Numbers(50), batch=50, seed=1), 3)


def test_a_dataset_smaller_than_a_batch() -> None:
    row = taken(Loader(Numbers(3), batch=8, seed=0), 3)
    assert [sorted(row[i : i + 3]) for i in range(0, 24, 3)] == [[0, 1, 2]] * 8
    assert taken(Loader(Numbers(1), batch=2, seed=0), 2) == [0, 0, 0, 0]


def test_ranks_of_a_loader() -> None:
    whole = taken(Loader(Numbers(10), batch=6, seed=5), 4)
    ranks = [taken(Loader(Numbers(10), batch=6, seed=5, rank=rank, world=2), 4) for rank in (0, 1)]
    assert [index for i in range(0, 12, 3) for rank in ranks for index in rank[i : i + 3]] == whole


def test_the_callers_random_numbers_are_left_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    taken(Loader(Numbers(10), batch=6, seed=5), 2)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_keep_their_words(workers: int) -> None:
    with (
        Loader(Numbers(6, bad=4), batch=6, seed=0, workers=workers) as loader,
        pytest.raises(DataError, match=r"numbers\.bin: the number is missing; write it again"),
    ):
        next(loader)
    with (
        Loader(Numbers(6, odd=4), batch=6, seed=0, workers=workers) as loader,
        pytest.raises(DataError, match="must all have one size"),
    ):
        next(loader)
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies() -> None:
    with (
        Loader(Numbers(6, deadly=4), batch=6, seed=0, workers=1) as loader,
        pytest.raises(UserError, match="one of its workers died"),
    ):
        next(loader)


def test_settings_that_cannot_be() -> None:
    for wrong in ({"batch": 0}, {"batch": 5, "world": 2}, {"rank": 2, "world": 2}, {"rank": -1}, {"position": -1}):
        with pytest.raises(UsageError):
            Loader(Numbers(4), **({"batch": 4, "seed": 0} | wrong))
    with pytest.raises(DataError, match="holds no images"):
        Loader(Numbers(0), batch=1, seed=0)
    loader = Loader(Numbers(4), batch=1, seed=0)
    loader.close()
    assert list(loader) == []
