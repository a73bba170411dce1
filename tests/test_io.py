"""All of a file or nothing."""

import errno
import os

import pytest

from tusk.io import atomic_write


def test_writes_and_replaces(tmp_path):
    atomic_write(tmp_path / "a", b"one")
    atomic_write(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    atomic_write(tmp_path / "a", b"old")

    def fails(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", fails)
    else:
        monkeypatch.setattr("pathlib.Path.replace", fails)
    with pytest.raises(OSError, match="No space"):
        atomic_write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
