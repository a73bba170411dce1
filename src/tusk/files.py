"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Under a temporary name in the same folder, flushed to the disk, renamed: all of it or nothing."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # so that the new name survives a power cut too
        finally:
            os.close(folder)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
