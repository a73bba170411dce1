"""Which picture files a user means by paths, patterns or lists, in an order that is the same on every machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tusk.data.images import SUFFIXES, is_image
from tusk.data.remote import is_url, mirror
from tusk.errors import DataError, UsageError
from tusk.folders import holds_results, results_around
from tusk.names import as_url

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_LIST_SUFFIXES = frozenset({".txt", ".lst", ".list"})
_LONGEST_NAME = 60  # letters: a number may be appended, and no system allows more than 255 bytes
_FIX = "give a folder, a glob, a dataset's name, or a text file with one path in each line"


@dataclass(frozen=True)
class Skipped:
    file: Path
    reason: str


class PictureFile(NamedTuple):
    """A picture by its file, and by its number in there (from 0) where the file holds several."""

    path: Path
    frame: int | None = None


@dataclass(frozen=True)
class Source:
    """The picture files that a source names."""

    name: str  # for reports and file names
    origin: Path  # the folder, file, list or pattern itself; the root where there are several
    root: Path
    files: tuple[Path, ...]  # a file as often as it has frames that are pictures of their own
    unreadable: tuple[Skipped, ...] = ()  # folders that could not be looked into
    results: tuple[Path, ...] = ()  # folders with results of tusk, which were passed over
    empty: tuple[str, ...] = ()  # of several sources, those without a picture
    frames: tuple[int | None, ...] = ()  # of each file, counted from 0; empty where every file is one picture
    ignored_frames: int = 0  # in files with several, of which only the first is read
    ignored_in: int = 0  # so many files

    @property
    def pictures(self) -> Iterator[PictureFile]:
        """Every picture, in order."""
        frames = self.frames or (None,) * len(self.files)
        return map(PictureFile, self.files, frames)

    def label(self, file: Path, frame: int | None = None) -> str:
        """The file's name within the source, the same on every machine that holds a copy of it; frames count from 1."""
        name = file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else file.as_posix()
        return name if frame is None else f"{name}#{frame + 1}"

    def remarks(self) -> list[str]:
        """What was not read though it lies there, in words; nothing where all was."""
        words = []
        if self.results:
            shown = ", ".join(self.label(folder) for folder in self.results[:3])
            more = f" and {len(self.results) - 3} more" if len(self.results) > 3 else ""
            words.append(f"skipped {_number(len(self.results), 'folder')} with results of tusk: {shown}{more}")
        if self.empty:
            more = f" and {len(self.empty) - 3} more" if len(self.empty) > 3 else ""
            words.append(f"found no picture in {', '.join(self.empty[:3])}{more}")
        if self.ignored_frames:
            ignored, files = _number(self.ignored_frames, "frame"), _number(self.ignored_in, "multi-page file")
            words.append(f"ignored {ignored} in {files} (--frames all takes each as a picture)")
        return words


def natural_key(name: str) -> tuple[tuple[tuple[int, int | str], ...], str]:
    """Sorts as people count: img2 before img10, and capitals beside small letters."""
    parts = re.split(r"(\d+)", name.replace("/", "\0").casefold())
    return tuple((0, int(part)) if i % 2 else (1, part) for i, part in enumerate(parts)), name


def source_paths(source: Any, what: str = "source") -> tuple[str, ...]:
    """One path or several as texts, taken literally; an empty text and what is no path is refused."""
    many = source if isinstance(source, list | tuple) else [source]
    if not many:
        raise UsageError(what, "it is an empty list", _FIX)
    paths = []
    for one in many:
        path = os.fspath(one) if isinstance(one, str | os.PathLike) else None
        if not isinstance(path, str):
            raise UsageError(what, f"it is a {type(one).__name__}, not a path or name", _FIX)
        if not path:
            raise UsageError(what, "it is an empty text", _FIX)
        paths.append(path)
    return tuple(paths)


def name_of(source: Sources) -> str:
    """What results of a source are called: a folder or pattern by the folder, a file by its name, several together."""
    paths = [located(path) for path in source_paths(source)]
    if len(paths) == 1 and not paths[0].is_dir() and _wild(paths[0]) is None:
        return paths[0].stem[:_LONGEST_NAME]
    root = _common_root([_root_of(path) for path in paths])
    return (root.name if root.name not in ("", "..") else root.resolve().name)[:_LONGEST_NAME] or "root"


def find_files(source: Sources, without: Path | None = None) -> Source:
    """What folders (all pictures below), pictures, text lists of paths or patterns with *, ? or [] stand for.

    A folder and a pattern give natural order; a list keeps its own, its paths being relative to the list; several
    sources come one after the other, and a file that is in two of them once. In a folder, hidden files and files with
    suffixes that no picture has are passed over. So are, everywhere, `without` and what tusk itself has written.
    """
    paths = source_paths(source)
    parts = [_one(path, without) for path in paths]
    found = parts[0]
    if len(parts) > 1:
        root = _common_root([part.root for part in parts])
        found = Source(
            name=name_of(paths),
            origin=root,
            root=root,
            files=tuple(dict.fromkeys(file for part in parts for file in part.files)),
            unreadable=tuple(dict.fromkeys(folder for part in parts for folder in part.unreadable)),
            results=tuple(dict.fromkeys(folder for part in parts for folder in part.results)),
            empty=tuple(
                path
                for path, part in zip(paths, parts, strict=True)
                if not (part.files or part.unreadable or part.results)
            ),
        )
    if found.results and not found.files and not found.unreadable:
        why = f"there are only results of tusk in it (in {found.results[0]}), which are never read as pictures"
        raise DataError(paths[0], why, "name the folder of the pictures themselves")
    return found


def files_in_lines(lines: Iterable[str]) -> Source:
    """A list that comes through a pipe; its paths are relative to the current folder."""
    here = Path.cwd()
    files, results = _pictures_of(_listed(lines, here))
    return Source("list", Path("-"), here, files, results=results)


def _one(source: str, without: Path | None) -> Source:
    if is_url(source):
        url = as_url(source) or source
        found = _one(str(mirror(url, lambda name: Path(name).suffix.lower() in SUFFIXES)), without)
        return replace(found, name=name_of(url))
    path = located(source)
    name = name_of(source)
    if path.is_dir():
        around = results_around(path)
        return Source(name, path, path, (), results=(around,)) if around else _in_folder(path, name, without)
    if path.is_file() and path.suffix.lower() in _LIST_SUFFIXES:
        files, results = _pictures_of(_in_list(path))
        return Source(name, path, path.parent, files, results=results)
    if path.exists():
        files, results = _pictures_of([path])
        return Source(name, path, path.parent, files, results=results)
    wild = _wild(path)
    if wild is None:
        raise DataError(source, "there is no such file or folder", "check the path")
    root = _root_of(path)
    matching = _ordered([file for file in root.glob("/".join(path.parts[wild:])) if not file.is_dir()], root)
    files, results = _pictures_of(matching, root)
    return Source(name, path, root, files, results=results)


def located(source: str) -> Path:
    """The absolute path. A file that is there under the very name comes before what ~ or a pattern could mean."""
    path = Path(source).absolute()
    if source.startswith("~") and not path.exists():
        try:
            return Path(source).expanduser().absolute()
        except RuntimeError:  # there is no such user
            return path
    return path


def _wild(path: Path) -> int | None:
    """Which part of a path that does not exist makes it a pattern."""
    if path.exists():
        return None
    return next((i for i, part in enumerate(path.parts) if re.search(r"[*?\[]", part)), None)


def _root_of(path: Path) -> Path:
    wild = _wild(path)
    if wild is not None:
        return Path(*path.parts[:wild])
    return path if path.is_dir() else path.parent


def _common_root(roots: Sequence[Path]) -> Path:
    try:
        return Path(os.path.commonpath(roots))
    except ValueError:  # on several drives
        return roots[0]


def _in_folder(root: Path, name: str, without: Path | None) -> Source:
    files: list[Path] = []
    unreadable: list[Skipped] = []
    results: list[Path] = []
    seen: set[tuple[int, int]] = set()
    left_out = without.resolve() if without is not None and without.is_dir() else None

    def refuse(error: OSError) -> None:
        unreadable.append(Skipped(Path(error.filename), f"the folder cannot be read ({error.strerror})"))

    for folder, inner, names in os.walk(root, onerror=refuse, followlinks=True):
        # Links may lead in a circle; each real folder is entered once.
        place = Path(folder)
        status = place.stat()
        if (status.st_dev, status.st_ino) in seen:
            inner.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        out = left_out is not None and place != root and place.resolve() == left_out
        if out or holds_results(place):
            if inner or names:
                results.append(place)
            inner.clear()
            continue
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        shown = (Path(folder, name) for name in names if not name.startswith("."))
        files += (file for file in shown if file.suffix.lower() in SUFFIXES or (not file.suffix and is_image(file)))
    return Source(name, root, root, _ordered(files, root), tuple(unreadable), tuple(results))


def _pictures_of(files: Iterable[Path], root: Path | None = None) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """-> the files without those that tusk has written, and the folders with the latter.

    With a `root`, as for a pattern, nothing counts that lies in a folder of results anywhere below it.
    """
    kept: list[Path] = []
    results: dict[Path, None] = {}
    known: dict[Path, Path | None] = {}
    for file in files:
        folder = file.parent
        if folder not in known:
            known[folder] = results_around(file) or _results_below(folder, root)
        around = known[folder]
        if around is None:
            kept.append(file)
        else:
            results[around] = None
    return tuple(kept), tuple(results)


def _results_below(folder: Path, root: Path | None) -> Path | None:
    if root is None or not folder.is_relative_to(root):
        return None
    below = [folder, *folder.parents][: len(folder.relative_to(root).parts)]
    return next((place for place in below if holds_results(place)), None)


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


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
