"""Pictures and shards behind URLs: fsspec's memory, and a server on this machine."""

import http.server
import socket
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tusk.api.data import pack
from tusk.config.data import DataConfig
from tusk.data.registry import Request, open_dataset
from tusk.data.remote import is_url, local_copy, mirror
from tusk.data.sources import find_files
from tusk.errors import DataError, UsageError
from tusk.names import as_url

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    for number in range(12):
        Image.new("RGB", (16, 16), (number, 0, 0)).save(folder / ("sub" if number % 2 else ".") / f"{number}.png")
    (folder / "notes.txt").write_text("no picture")
    return folder


@pytest.fixture
def memory(photos):
    files = fsspec.filesystem("memory")
    files.put(str(photos), "/bucket/photos", recursive=True)
    yield files
    files.rm("/bucket", recursive=True)


@pytest.fixture
def server(tmp_path):
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("s3://bucket/photos", "s3://bucket/photos"),
        (str(Path("s3://bucket/photos")), "s3://bucket/photos"),
        ("hf:\\datasets\\x", "hf://datasets/x"),
        ("photos/a.png", None),
        ("C:/photos", None),
        ("C:\\photos", None),
        ("/tmp/x", None),
        ("", None),
    ],
)
def test_what_is_a_url(text, url):
    assert as_url(text) == url


def test_a_setting_keeps_its_url(tmp_path, monkeypatch):
    assert DataConfig(source="s3://bucket/photos").sources == ("s3://bucket/photos",)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ab:").mkdir()
    (tmp_path / "ab:" / "c").write_text("")
    assert is_url("ab://d") and not is_url("ab:/c")  # what lies here comes first


@pytest.mark.usefixtures("memory")
def test_pictures_are_copied_once():
    found = find_files("memory://bucket/photos")
    assert found.name == "photos" and [file.name for file in found.files] == [
        *(f"{number}.png" for number in (0, 2, 4, 6, 8, 10)), *(f"{number}.png" for number in (1, 3, 5, 7, 9, 11))
    ]  # fmt: skip
    first = {file: file.stat().st_mtime_ns for file in found.files}
    again = find_files("memory://bucket/photos")
    assert {file: file.stat().st_mtime_ns for file in again.files} == first
    one = find_files("memory://bucket/photos/4.png").files[0]
    assert np.asarray(Image.open(one))[0, 0, 0] == 4


@pytest.mark.usefixtures("memory")
def test_packed_to_a_url_and_trained_on_from_there():
    packed, where = pack("memory://bucket/photos", "memory://bucket/shards", shard_bytes=300)
    assert where == "memory://bucket/shards" and len(packed.manifest.shards) > 1
    dataset = open_dataset("folder", Request(source=where, size=8))
    assert sorted(int(dataset.image(index)[0, 0, 0]) for index in range(12)) == list(range(12))
    assert all(file.is_file() for file in dataset.original.source_files())


def test_a_server_on_this_machine(server, photos, tmp_path):
    pytest.importorskip("aiohttp")
    pack(photos, str(tmp_path / "shards"), shard_bytes=300)
    dataset = open_dataset("folder", Request(source=f"{server}/shards", size=8))
    assert sorted(int(dataset.image(index)[0, 0, 0]) for index in range(12)) == list(range(12))
    with pytest.raises(DataError, match="nothing at this URL"):
        local_copy(f"{server}/shards/missing.bin")


def test_loose_pictures_on_a_server(server, photos, capfd):
    pytest.importorskip("aiohttp")
    found = find_files(f"{server}/photos")
    reds = sorted(int(np.asarray(Image.open(file))[0, 0, 0]) for file in found.files)
    assert reds == list(range(12)) and len(list(photos.rglob("*.png"))) == 12
    first = {file: file.stat().st_mtime_ns for file in found.files}
    capfd.readouterr()
    assert {file: file.stat().st_mtime_ns for file in find_files(f"{server}/photos").files} == first
    asked = [line for line in capfd.readouterr().err.splitlines() if '"GET' in line and ".png" in line]
    assert not asked, "what is there is not fetched again"
    assert np.asarray(Image.open(find_files(f"{server}/photos/4.png").files[0]))[0, 0, 0] == 4
    with pytest.raises(DataError, match="nothing at this URL"):
        find_files(f"{server}/nowhere/a.png")


def test_a_server_that_is_not_there_is_one_sentence(server):
    pytest.importorskip("aiohttp")
    port = int(server.rpartition(":")[2])
    with socket.socket() as taken:  # a port that nobody listens on
        taken.bind(("127.0.0.1", 0))
        free = taken.getsockname()[1]
        assert free != port
        with pytest.raises(DataError, match="check the URL, the connection"):
            find_files(f"http://127.0.0.1:{free}/photos/a.png")


@pytest.mark.usefixtures("memory")
def test_the_cache_keeps_to_its_size(monkeypatch):
    _, where = pack("memory://bucket/photos", "memory://bucket/shards", shard_bytes=300)
    monkeypatch.setenv("TUSK_REMOTE_CACHE_GB", "0.0000005")
    dataset = open_dataset("folder", Request(source=where, size=8))
    for index in range(12):
        dataset.image(index)
    here = local_copy(f"{where}/shard-00000.bin").parent
    assert len(list(here.glob("shard-*.bin"))) <= 2


@pytest.mark.usefixtures("memory")
def test_faults_are_one_sentence():
    for url in ("memory://nowhere/photos/a.png", "memory://nowhere/shards/shards.json"):
        with pytest.raises(DataError, match="nothing at this URL"):
            local_copy(url)
    with pytest.raises(UsageError, match="kind"):
        mirror("nosuch://bucket/photos", lambda name: bool(name))
