"""Files that are never half written, and locks that a dead process never holds; on every system that Python runs on."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from filelock import BaseFileLock, FileLock, Timeout

# What a system says that cannot flush a folder: some network and FUSE file systems.
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EACCES})
_LONGEST_NAME = 255  # bytes of a file name, on nearly every file system


def atomic_write(path: Path, content: bytes, *, flushed: bool = True) -> None:
    """Under a temporary name in the same folder, flushed to the disk, renamed: all of it or nothing.

    Without `flushed` that holds for a kill, not for a power cut: many small files are written much faster so.
    """
    with atomic_file(path, flushed=flushed) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path, *, flushed: bool = True) -> Iterator[BinaryIO]:
    """The same for what is too large to be held in memory: the file is there once the block has ended well."""
    temporary = path.with_name(_temporary_name(path.name))
    try:
        with temporary.open("wb") as file:
            yield file
            if flushed:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if flushed:
            sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # people look for that one; a full disk names none
        raise


def _temporary_name(name: str) -> str:
    """Beside the file, and never longer than a file's name may be."""
    longer = f".{name}.part"
    if len(os.fsencode(longer)) <= _LONGEST_NAME:
        return longer
    return f".{hashlib.sha256(os.fsencode(name)).hexdigest()}.part"


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can: Windows cannot open folders."""
    as_folder: int | None = getattr(os, "O_DIRECTORY", None)
    if as_folder is None:
        return
    try:
        opened = os.open(folder, os.O_RDONLY | as_folder)
    except PermissionError:
        return  # a folder that may be written to, but not read
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(opened)


class FileLocks:
    """Locks between processes, each of them a file in one folder; the system releases those of a process that dies.

    Any number of objects and processes may share the folder. It is made when the first lock is asked for, and made
    again where somebody has taken it away. The files stay there: whoever owns the folder deletes it in the end.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[int | str, BaseFileLock] = {}

    def acquire(self, key: int | str) -> bool:
        """Take the lock if nobody has it."""
        if key in self._held:
            return False
        lock = FileLock(self._folder / f"{key}.lock", thread_local=False)
        while True:
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                return False
            except FileNotFoundError:
                continue  # the folder was taken away just now
            self._held[key] = lock
            return True

    def release(self, key: int | str) -> None:
        """Give the lock back; nothing to do where it is not held any more."""
        lock = self._held.pop(key, None)
        if lock is not None:
            lock.release()

    @contextmanager
    def held(self, key: int | str) -> Iterator[None]:
        """Wait for the lock and keep it for the block."""
        while not self.acquire(key):
            time.sleep(0.02)
        try:
            yield
        finally:
            self.release(key)

    def close(self) -> None:
        """Release all that are still held."""
        for key in list(self._held):
            self.release(key)
