"""Shards: packed, read, shuffled within a window, refused where damaged, and gone on with to the sample."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tusk.data.shards.writer as writer
from tusk.cli.main import main
from tusk.data.loader import Loader, Order
from tusk.data.registry import Request, open_dataset
from tusk.data.shards.dataset import ShardDataset, is_shards
from tusk.data.shards.format import MANIFEST, read_index, read_names
from tusk.data.shards.order import windowed
from tusk.data.shards.writer import pack_pictures
from tusk.data.sources import find_files
from tusk.errors import DataError, UsageError

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """41 pictures, the first number of red in each its own; and one that is none."""
    folder = tmp_path_factory.mktemp("photos")
    for number in range(41):
        Image.new("RGB", (20 + number % 3, 16), (number, 0, 0)).save(folder / f"{number}.png")
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    return folder


@pytest.fixture
def shards(photos, tmp_path):
    packed = pack_pictures(find_files(photos), tmp_path / "shards", shard_bytes=700)
    assert len(packed.manifest.shards) > 3 and [one.file.name for one in packed.skipped] == ["broken.png"]
    return tmp_path / "shards"


def reds(dataset):
    return [int(dataset.image(index)[0, 0, 0]) for index in range(len(dataset))]


def test_every_picture_is_there_once_and_as_it_was(shards, photos):
    dataset = ShardDataset(str(shards))
    found = reds(dataset)
    assert sorted(found) == list(range(41)) and found != sorted(found)
    contents = {file.read_bytes() for file in photos.glob("[0-9]*.png")}
    assert {dataset.content(index) for index in range(41)} == contents
    assert is_shards(str(shards)) and not is_shards(str(photos)) and not is_shards(None)
    opened = open_dataset("folder", Request(source=str(shards), size=8))
    assert len(opened) == 41 and opened.image(3).shape == (8, 8, 3) and opened.truth(0) is None
    assert set(dataset.sample_places(5).tolist()) < set(range(sum(dataset.shard_sizes[:2])))
    with pytest.raises(IndexError):
        dataset.image(41)


def test_larger_pictures_are_scaled_down(photos, tmp_path):
    pack_pictures(find_files(photos), tmp_path / "small", side=8)
    dataset = ShardDataset(str(tmp_path / "small"))
    assert {min(dataset.image(index).shape[:2]) for index in range(41)} == {8} and len(dataset.shard_sizes) == 1


def test_an_epoch_has_every_picture_once_and_stays_near():
    sizes, window = (50, 30, 70, 10, 40), 64
    total = sum(sizes)
    for epoch in range(3):
        row = windowed(np.arange(total), sizes, 7, epoch, window)
        assert sorted(row.tolist()) == list(range(total))
        shard = np.repeat(np.arange(5), sizes)[row]
        for start in range(0, total, window):
            assert len(set(shard[start : start + window].tolist())) <= 4  # 64 pictures lie in so many shards at most
    assert not np.array_equal(windowed(np.arange(total), sizes, 7, 0, window), row)
    # Any part of it is the same part.
    places = np.array([3, 150, 77, 199])
    np.testing.assert_array_equal(windowed(places, sizes, 7, 2, window), row[places])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_goes_on_to_the_sample(shards, workers):
    dataset = open_dataset("folder", Request(source=str(shards), size=8))

    def take(position, count):
        with Loader(dataset, batch=4, seed=3, workers=workers, position=position) as loader:
            return [next(loader) for _ in range(count)]

    whole, rest = take(0, 25), take(11, 14)
    for one, again in zip(whole[11:], rest, strict=True):
        assert one.indices.tolist() == again.indices.tolist() and one.position == again.position
        assert one.images.equal(again.images)
    assert sorted(index for batch in whole for index in batch.indices.tolist())[:41] != []
    first_epoch = [index for batch in whole[:11] for index in batch.indices.tolist()][:41]
    assert sorted(first_epoch) == list(range(41))
    # The processes of a machine or several read parts of the same batch.
    shares = [Order(41, 4, 3, rank, 2, dataset.original.shard_sizes).indices(5).tolist() for rank in (0, 1)]
    assert shares[0] + shares[1] == whole[5].indices.tolist()


READER = """
import sys
from tusk.data.loader import Loader
from tusk.data.registry import Request, open_dataset
dataset = open_dataset("folder", Request(source=sys.argv[1], size=8))
with Loader(dataset, batch=4, seed=3, position=int(sys.argv[2])) as loader:
    for _ in range(1000):
        batch = next(loader)
        print(batch.position, *batch.indices.tolist(), flush=True)
"""


def test_killed_it_goes_on_to_the_sample(shards):
    def read(position, lines):
        command = [sys.executable, "-c", READER, str(shards), str(position)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            found = [process.stdout.readline() for _ in range(lines)]
            process.kill()
        return found

    before = read(0, 7)
    after = read(7, 7)
    dataset = open_dataset("folder", Request(source=str(shards), size=8))
    with Loader(dataset, batch=4, seed=3) as loader:
        batches = [next(loader) for _ in range(14)]
    wanted = [" ".join(map(str, [batch.position, *batch.indices.tolist()])) + "\n" for batch in batches]
    assert before + after == wanted


def test_packing_that_was_ended_goes_on(photos, tmp_path, monkeypatch):
    whole = pack_pictures(find_files(photos), tmp_path / "whole", shard_bytes=700)
    written = writer.atomic_write

    def dies(path, content):
        if path.name == "shard-00002.bin":
            raise KeyboardInterrupt
        written(path, content)

    monkeypatch.setattr(writer, "atomic_write", dies)
    with pytest.raises(KeyboardInterrupt):
        pack_pictures(find_files(photos), tmp_path / "again", shard_bytes=700)
    assert not is_shards(str(tmp_path / "again"))
    read = []
    monkeypatch.setattr(writer, "atomic_write", written)
    monkeypatch.setattr(
        writer, "_content", lambda file, side, real=writer._content: read.append(file) or real(file, side)
    )
    assert pack_pictures(find_files(photos), tmp_path / "again", shard_bytes=700).manifest == whole.manifest
    kept = set()
    for one in whole.manifest.shards[:2]:
        content = (tmp_path / "whole" / one.file).read_bytes()
        kept |= set(read_names(content, read_index(content, one.file), one.file))
    assert kept and read and not kept & {file.name for file in read}, "what is in a shard is not read again"
    for one in whole.manifest.shards:
        assert (tmp_path / "again" / one.file).read_bytes() == (tmp_path / "whole" / one.file).read_bytes()
    with pytest.raises(UsageError, match="already"):
        pack_pictures(find_files(photos), tmp_path / "again")


@pytest.mark.parametrize("fault", ["cut", "mark", "index", "gone", "count", "list", "newer", "elsewhere"])
def test_damage_is_one_sentence(shards, fault):
    shard, listed = shards / "shard-00000.bin", shards / MANIFEST
    content, values = shard.read_bytes(), json.loads(listed.read_text())
    if fault == "gone":
        shard.unlink()
    elif fault in ("cut", "mark", "index"):
        index = content[: len(content) // 2] + b"\xff" * 24 + content[len(content) // 2 + 24 :]
        shard.write_bytes({"cut": content[:-30], "mark": content[:-8] + b"12345678", "index": index}[fault])
        if fault == "index":
            start = int.from_bytes(content[-24:-16], "little")
            shard.write_bytes(content[: start + 8] + b"\xff" * 8 + content[start + 16 :])
    else:
        values["version"] += fault == "newer"
        values["shards"][0]["pictures"] += fault == "count"
        values["shards"][0]["file"] = "../shard" if fault == "elsewhere" else "shard-00000.bin"
        listed.write_text(json.dumps(values) if fault != "list" else "{")
    with pytest.raises(DataError):
        ShardDataset(str(shards)).image(0)


def test_the_verb(photos, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["data", "pack", str(photos), "--out", "packed", "--shard-size", "1kB"])
    said = capsys.readouterr()
    assert said.out == "packed\n" and "41 pictures" in said.err and "tusk train packed" in said.err
    assert "broken.png" in (tmp_path / "packed" / "skipped.csv").read_text()
    main(["data", "info", "packed"])
    assert "images: 41" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["data", "pack", str(photos), "--out", "other", "--shard-size", "many"])
    assert stop.value.code == 2
