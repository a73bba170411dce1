"""Folders for results: earlier results are never overwritten, and never taken for pictures to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tusk.errors import UsageError
from tusk.names import short_name

# Where a run's own pictures lie, below its folder.
_PICTURES = frozenset({"overlays", "masks"})
_MANIFEST_KEYS = frozenset({"model", "files", "names", "part"})
_BESIDE_CONFIG = ("command.txt", "metrics.jsonl", "checkpoints", "seeds.json")
_READ = 1 << 20  # bytes of a manifest, which has a few hundred


def new_folder(wanted: Path) -> Path:
    """`wanted`, or `wanted-2`, `wanted-3` ... where it exists."""
    wanted = short_folder(wanted)
    number, folder = 1, wanted
    while folder.exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def short_folder(wanted: Path) -> Path:
    """The same with room for a number after its name."""
    return wanted.with_name(short_name(wanted.name, 200)) if len(wanted.name) > 40 else wanted


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


def holds_results(folder: Path) -> bool:
    """Whether a training or a detection of tusk wrote its results into this folder.

    By what is in the files, not by their names alone: people too call files config.yaml and manifest.json.
    """
    try:
        return _is_detection(folder / "manifest.json") or _is_training(folder)
    except OSError:
        return False


def results_around(path: Path) -> Path | None:
    """The folder of results that the path is, or whose overlays or masks it is one of; None for anything else."""
    if holds_results(path):
        return path
    inner = path
    for outer in path.parents:
        if inner.name in _PICTURES and holds_results(outer):
            return outer
        inner = outer
    return None


def _is_detection(manifest: Path) -> bool:
    if not manifest.is_file():
        return False
    with manifest.open("rb") as file:
        text = file.read(_READ)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and values.keys() >= _MANIFEST_KEYS


def _is_training(folder: Path) -> bool:
    """The whole configuration, as tusk writes it, beside what only a run has."""
    config = folder / "config.yaml"
    if not config.is_file() or not any((folder / name).exists() for name in _BESIDE_CONFIG):
        return False
    with config.open("rb") as file:
        return file.read(32).startswith((b"data:\n  dataset:", b"data:\r\n  dataset:"))
