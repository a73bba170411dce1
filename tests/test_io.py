"""All of a file or nothing; locks that end with their process."""

import errno
import os
import shutil
import stat
import subprocess
import sys

import pytest

from tusk.io import FileLocks, atomic_write, sync_folder


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


def test_a_name_as_long_as_names_may_be(tmp_path):
    for name in ("x" * 255, "é" * 127, "x" * 250):  # the temporary name has no room to be longer
        atomic_write(tmp_path / name, b"content")
        assert (tmp_path / name).read_bytes() == b"content"
    assert len(list(tmp_path.iterdir())) == 3


_HOLD = """
import sys, time
from pathlib import Path
from tusk.io import FileLocks
locks = FileLocks(Path(sys.argv[1]))
assert locks.acquire(3)
print("held", flush=True)
time.sleep(60)
"""


def test_a_lock_keeps_other_processes_out_until_its_own_dies(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, tmp_path / "locks"], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    locks = FileLocks(tmp_path / "locks")
    assert not locks.acquire(3)
    assert locks.acquire("end")  # others are free
    holder.kill()
    holder.wait()
    with locks.held(3):
        assert not FileLocks(tmp_path / "locks").acquire(3), "nor can another object of the same process take it"
        assert not locks.acquire(3)
    assert not FileLocks(tmp_path / "locks").acquire("end")
    locks.close()
    other = FileLocks(tmp_path / "locks")
    assert other.acquire("end"), "closing releases what is still held"
    other.close()


def test_a_folder_of_locks_that_was_taken_away_is_made_again(tmp_path):
    locks = FileLocks(tmp_path / "parts" / "locks")
    with locks.held("begin"):
        shutil.rmtree(tmp_path / "parts")
    with locks.held("begin"):
        assert not FileLocks(tmp_path / "parts" / "locks").acquire("begin")


def test_folders_are_synced_where_the_system_can(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(opened))
    sync_folder(tmp_path)
    assert len(synced) == hasattr(os, "O_DIRECTORY")
    monkeypatch.delattr(os, "O_DIRECTORY", raising=False)
    sync_folder(tmp_path)
    assert len(synced) <= 1, "a system without folders that can be opened, such as Windows"


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders cannot be opened")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_flush_folders_is_no_fault(tmp_path, monkeypatch, number):
    real = os.fsync

    def files_only(opened):
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(number, os.strerror(number))
        real(opened)

    monkeypatch.setattr(os, "fsync", files_only)
    atomic_write(tmp_path / "a", b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


_ELSEWHERE = """
import os, sys
from pathlib import Path
sys.modules["fcntl"] = None  # as on Windows: importing it fails
for name in ("O_DIRECTORY", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
import tusk.api.model, tusk.cli.train, tusk.cli.detect, tusk.training.run
from tusk.io import FileLocks, atomic_write
atomic_write(Path(sys.argv[1], "a"), b"whole")
locks = FileLocks(Path(sys.argv[1], "locks"))
with locks.held(1):
    assert not FileLocks(Path(sys.argv[1], "locks")).acquire(1)
assert locks.acquire(1)
"""


@pytest.mark.slow
def test_a_system_without_fcntl_and_without_folder_handles(tmp_path):
    done = subprocess.run([sys.executable, "-c", _ELSEWHERE, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a").read_bytes() == b"whole"
