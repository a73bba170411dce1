"""Which picture files a run began with, so that it never goes on with others.

`pictures.jsonl` in a run's folder has a first line with the number of files and a checksum over all the others; then a
line for each file: absolute path, size in bytes, time of its last change, and a checksum of pieces of its content.
Sizes alone would not do: all pictures of a microscope may have the same one. Of each file a few kilobytes are read.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tusk.data.dataset import Dataset
from tusk.data.framing.framed import OfFiles
from tusk.errors import DataError
from tusk.io import atomic_write

NAME = "pictures.jsonl"  # in a run's folder
_VERSION = 1
_PIECE = 4096  # bytes


@runtime_checkable
class FromFiles(Protocol):
    """A dataset that knows every file that it was opened from."""

    def source_files(self) -> Sequence[Path]: ...


@dataclass(frozen=True)
class ListedFile:
    """A file as it was when the run began."""

    path: str  # absolute
    size: int
    modified: int  # nanoseconds
    sample: int | None = None  # CRC-32 of its begin, middle and end; None in the lists of an older tusk


@dataclass(frozen=True)
class FileList:
    """The files of a run."""

    files: tuple[ListedFile, ...]

    @property
    def checksum(self) -> str:
        """Over absolute paths, sizes and contents. Not over times: a copy or a backup changes those alone."""
        return _digest((file.path, file) for file in self.files)

    @property
    def content_checksum(self) -> str:
        """The same without the folders: equal on machines that hold copies of the files in different places."""
        return _digest((Path(file.path).name, file) for file in self.files)

    def write(self, run: Path) -> None:
        """Into the folder of a run."""
        lines: list[Any] = [{"version": _VERSION, "files": len(self.files), "sha256": self.checksum}]
        lines += ([file.path, file.size, file.modified, file.sample] for file in self.files)
        atomic_write(run / NAME, "".join(f"{json.dumps(line)}\n" for line in lines).encode())


@dataclass(frozen=True)
class Changes:
    """How the files differ from those of a list."""

    gone: int
    new: int
    changed: int  # of another size or content
    redated: int  # written to since, but the same

    @property
    def are_others(self) -> bool:
        return bool(self.gone or self.new or self.changed)

    @property
    def words(self) -> str:
        parts = ((self.gone, "gone"), (self.new, "new"), (self.changed, "changed"))
        return ", ".join(f"{count} {what}" for count, what in parts if count)


def list_files(dataset: Dataset, source: Any) -> FileList | None:
    """The files that a dataset was opened from; None where tusk made its images.

    source: the configured one (a path, or several), for datasets that do not tell their files: then all files below.
    """
    if source is None:
        return None
    while hasattr(dataset, "original"):  # framed, or cut to a number
        dataset = dataset.original
    if isinstance(dataset, FromFiles):
        paths: Iterable[Path] = dataset.source_files()
    elif isinstance(dataset, OfFiles):
        paths = dict.fromkeys(dataset.picture_file(index) for index in range(len(dataset)))
    else:
        sources = [source] if isinstance(source, str | os.PathLike) else list(source)
        paths = [file for one in sources for file in _below(Path(one))]
    return FileList(tuple(_listed(path) for path in paths))


def read_list(run: Path) -> FileList | None:
    """That of a run; None where it has none, as those that an older tusk began."""
    path = run / NAME
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found = FileList(tuple(_from_line(line) for line in lines[1:]))
        if lines[0]["sha256"] != found.checksum:
            raise ValueError("its checksum does not fit")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        fix = "delete it to go on without a comparison of the pictures"
        raise DataError(str(path), f"the list of the run's pictures is damaged ({error})", fix) from error
    return found


def compare(before: FileList, now: FileList) -> Changes:
    """What became of the files of a list."""
    then = {file.path: file for file in before.files}
    here = {file.path: file for file in now.files}
    both = then.keys() & here.keys()
    changed = {path for path in both if _differ(then[path], here[path])}
    redated = {path for path in both - changed if then[path].modified != here[path].modified}
    return Changes(len(then.keys() - here.keys()), len(here.keys() - then.keys()), len(changed), len(redated))


def _differ(before: ListedFile, now: ListedFile) -> bool:
    return before.size != now.size or (before.sample != now.sample and before.sample is not None)


def _from_line(line: list[Any]) -> ListedFile:
    name, size, modified, *sample = line
    return ListedFile(str(name), int(size), int(modified), int(sample[0]) if sample and sample[0] is not None else None)


def _listed(path: Path) -> ListedFile:
    absolute = str(path.absolute())
    try:
        status = path.stat()
        return ListedFile(absolute, status.st_size, status.st_mtime_ns, _sample(path, status.st_size))
    except (OSError, ValueError):
        return ListedFile(absolute, -1, 0)  # a folder or list may name what cannot be opened


def _sample(path: Path, size: int) -> int:
    found = 0
    with path.open("rb", buffering=0) as file:
        for start in dict.fromkeys((0, max(0, size // 2), max(0, size - _PIECE))):
            file.seek(start)
            found = zlib.crc32(file.read(_PIECE), found)
    return found


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)


def _digest(rows: Iterable[tuple[str, ListedFile]]) -> str:
    digest = hashlib.sha256()
    for name, file in rows:
        content = "" if file.sample is None else f"{file.sample}\0"
        digest.update(os.fsencode(name) + f"\0{file.size}\0{content}".encode())
    return digest.hexdigest()
