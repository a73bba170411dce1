"""Folders for results: earlier results are never overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tusk.errors import UsageError


def new_folder(wanted: Path) -> Path:
    """`wanted`, or `wanted-2`, `wanted-3` ... where it exists."""
    number, folder = 1, wanted
    while folder.exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def make_folder(folder: Path) -> None:
    """Make the folder for results, which must not hold any yet."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(str(folder), "the folder is not empty", "name a new one, or delete it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise UsageError(str(folder), f"the folder cannot be made ({error.strerror})", "name another one") from error


class ResultsFolder:
    """A folder that is made once the work begins, and taken away again where it fails before anything is in it."""

    def __init__(self, named: Path | None, wanted: Path) -> None:
        self.path = new_folder(wanted) if named is None else named
        self._mine = False

    def make(self) -> Path:
        self._mine = not self.path.exists()
        make_folder(self.path)
        return self.path

    def drop(self) -> None:
        if self._mine and not any(self.path.iterdir()):
            self.path.rmdir()


@contextmanager
def results_folder(named: Path | None, wanted: Path) -> Iterator[ResultsFolder]:
    """The folder that was named, or a new one like `wanted`, for the time of a block."""
    folder = ResultsFolder(named, wanted)
    try:
        yield folder
    except BaseException:
        folder.drop()
        raise
