"""All of a file or nothing; locks that end with their process."""

import errno
import os
import subprocess
import sys

import pytest

from tusk.io import ByteLocks, atomic_write, sync_folder


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


_HOLD = """
import sys, time
from pathlib import Path
from tusk.io import ByteLocks
locks = ByteLocks(Path(sys.argv[1]))
assert locks.acquire(3)
print("held", flush=True)
time.sleep(60)
"""


def test_a_lock_keeps_other_processes_out_until_its_own_dies(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, tmp_path / "lock"], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    locks = ByteLocks(tmp_path / "lock")
    assert not locks.acquire(3)
    assert locks.acquire(1 << 41)  # bytes beyond the end, and other bytes, are free
    holder.kill()
    holder.wait()
    with locks.held(3):
        pass
    locks.release(1 << 41)
    locks.close()


def test_folders_are_synced_where_the_system_can(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(opened))
    sync_folder(tmp_path)
    assert len(synced) == (sys.platform != "win32")
