"""Which picture files a user means by a path, a pattern or a list, in an order that is the same on every machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tusk.data.images import SUFFIXES, is_image
from tusk.errors import DataError

_LIST_SUFFIXES = frozenset({".txt", ".lst", ".list"})


@dataclass(frozen=True)
class Skipped:
    file: Path
    reason: str


@dataclass(frozen=True)
class Source:
    """The picture files that a source names."""

    name: str  # for reports and file names
    origin: Path  # the folder, file, list or pattern itself
    root: Path
    files: tuple[Path, ...]
    unreadable: tuple[Skipped, ...] = ()  # folders that could not be looked into

    def label(self, file: Path) -> str:
        """The file's name within the source, the same on every machine that holds a copy of it."""
        return file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else file.as_posix()


def natural_key(name: str) -> tuple[tuple[tuple[int, int | str], ...], str]:
    """Sorts as people count: img2 before img10, and capitals beside small letters."""
    parts = re.split(r"(\d+)", name.replace("/", "\0").casefold())
    return tuple((0, int(part)) if i % 2 else (1, part) for i, part in enumerate(parts)), name


def find_files(source: str | Path) -> Source:
    """What a folder (all pictures below it), a picture, a text list of paths or a pattern with *, ? or [] stands for.

    A folder and a pattern give natural order; a list keeps its own, its paths being relative to the list. In a folder,
    hidden files and files with suffixes that no picture has are passed over.
    """
    path = Path(source).expanduser().absolute()
    if path.is_dir():
        return _in_folder(path)
    if path.is_file() and path.suffix.lower() in _LIST_SUFFIXES:
        return Source(path.stem, path, path.parent, _in_list(path))
    if path.exists():
        return Source(path.stem, path, path.parent, (path,))
    wild = next((i for i, part in enumerate(path.parts) if re.search(r"[*?\[]", part)), None)
    if wild is None:
        raise DataError(str(source), "there is no such file or folder", "check the path")
    root = Path(*path.parts[:wild])
    files = [file for file in root.glob("/".join(path.parts[wild:])) if not file.is_dir()]
    return Source(root.name or "root", path, root, _ordered(files, root))


def files_in_lines(lines: Iterable[str]) -> Source:
    """A list that comes through a pipe; its paths are relative to the current folder."""
    here = Path.cwd()
    return Source("list", Path("-"), here, _listed(lines, here))


def _in_folder(root: Path) -> Source:
    files: list[Path] = []
    unreadable: list[Skipped] = []
    seen: set[tuple[int, int]] = set()

    def refuse(error: OSError) -> None:
        unreadable.append(Skipped(Path(error.filename), f"the folder cannot be read ({error.strerror})"))

    for folder, inner, names in os.walk(root, onerror=refuse, followlinks=True):
        # Links may lead in a circle; each real folder is entered once.
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:
            inner.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        shown = (Path(folder, name) for name in names if not name.startswith("."))
        files += (file for file in shown if file.suffix.lower() in SUFFIXES or (not file.suffix and is_image(file)))
    return Source(root.name or "root", root, root, _ordered(files, root), tuple(unreadable))


def _ordered(files: list[Path], root: Path) -> tuple[Path, ...]:
    return tuple(sorted(files, key=lambda file: natural_key(file.relative_to(root).as_posix())))


def _in_list(path: Path) -> tuple[Path, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        why = f"cannot be read as a list of paths ({error})"
        raise DataError(str(path), why, "write one path per line, in UTF-8") from error
    return _listed(lines, path.parent)


def _listed(lines: Iterable[str], folder: Path) -> tuple[Path, ...]:
    """One path per line, relative to the folder; empty lines and those that begin with # are passed over."""
    entries = (line.strip() for line in lines)
    return tuple(dict.fromkeys(folder / entry for entry in entries if entry and not entry.startswith("#")))
