"""Files that are never half written, and locks that a dead process never holds; on every system that Python runs on."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def atomic_write(path: Path, content: bytes, *, flushed: bool = True) -> None:
    """Under a temporary name in the same folder, flushed to the disk, renamed: all of it or nothing.

    Without `flushed` that holds for a kill, not for a power cut: many small files are written much faster so.
    """
    with atomic_file(path, flushed=flushed) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path, *, flushed: bool = True) -> Iterator[BinaryIO]:
    """The same for what is too large to be held in memory: the file is there once the block has ended well."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            if flushed:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if flushed:
            sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut. Windows cannot open folders and has nothing of the kind."""
    if sys.platform != "win32":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


class ByteLocks:
    """Locks between processes, one for each byte of a file; the system releases those of a process that dies.

    The bytes need not exist. One object for a file and process: closing a second one would release the locks of all.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b", buffering=0)

    def acquire(self, byte: int) -> bool:
        """Take the lock if no other process has it."""
        try:
            if sys.platform == "win32":
                os.lseek(self._file.fileno(), byte, os.SEEK_SET)
                msvcrt.locking(self._file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def release(self, byte: int) -> None:
        if sys.platform == "win32":
            os.lseek(self._file.fileno(), byte, os.SEEK_SET)
            msvcrt.locking(self._file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)

    @contextmanager
    def held(self, byte: int) -> Iterator[None]:
        """Wait for the lock and keep it for the block."""
        while not self.acquire(byte):
            time.sleep(0.02)
        try:
            yield
        finally:
            self.release(byte)

    def close(self) -> None:
        self._file.close()
