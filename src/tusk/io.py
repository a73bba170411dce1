"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
        if not flushed:
            return
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # so that the new name survives a power cut too
        finally:
            os.close(folder)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
