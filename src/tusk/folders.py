"""Folders for results: earlier results are never overwritten."""

from __future__ import annotations

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
