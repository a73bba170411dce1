"""What a run over many files has done and still has to do, kept on disk so that any process may die at any moment.

    FOLDER/manifest.json        what is to be done, and at last that it is done
    FOLDER/parts/files.jsonl    the files, one path to a line, with the number of the frame where they have several
    FOLDER/parts/000012.jsonl   the records of files 12 x part to 13 x part - 1, written whole
    FOLDER/parts/locks/         a file for every part, which is locked while a process is at work on it

The files fall into parts in one way only, however many processes share them: a part has the same result whoever makes
it. Locks of processes that died are gone, so that nobody ever waits for them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tusk.data.sources import PictureFile, Source
from tusk.detection.records import Record, Totals
from tusk.errors import DataError, UsageError
from tusk.io import FileLocks, atomic_file, atomic_write

_NAME = "manifest.json"
_BEGIN, _END = "begin", "end"  # the locks that are not of a part


@dataclass(frozen=True)
class Manifest:
    """All that the results depend on. A folder goes on only with the same."""

    version: str
    model: str  # the fingerprint
    source: str
    files: int
    names: str  # checksum over the files' paths
    part: int  # files in a part
    keypoints: int | None
    min_score: float
    min_gain: float
    batch: int
    masks: bool
    overlays: bool
    detection: dict[str, Any]  # the settings that stand over the model's own
    naming: str | None = None  # checksum over the names and corrections of types, where there are any
    totals: Totals | None = None  # once all is done

    @property
    def parts(self) -> int:
        return -(-self.files // self.part)

    def write(self, folder: Path) -> None:
        atomic_write(folder / _NAME, json.dumps(asdict(self), indent=1).encode())


def part_size(files: int) -> int:
    """Small enough that a kill loses little, large enough that a million files leave a few thousand parts."""
    return min(512, max(16, files // 64))


def checksum(source: Source) -> str:
    """Over all paths of the source, in order, and over the frames where those are pictures of their own."""
    digest = hashlib.sha256()
    for file, frame in source.pictures:
        digest.update(os.fsencode(file) + b"\0" + (b"" if frame is None else b"%d\0" % frame))
    return digest.hexdigest()


class Ledger:
    """The parts of one run; use it in a `with` block, or close it."""

    def __init__(self, folder: Path, source: Source, manifest: Manifest) -> None:
        self._folder, self._parts, self._manifest = folder, folder / "parts", manifest
        self._check(anew=True)  # before anything is made
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            why = f"the folder cannot be made ({error.strerror})"
            raise UsageError(str(folder), why, "name another one") from error
        self._locks = FileLocks(self._parts / "locks")
        try:
            with self._locks.held(_BEGIN):
                if not self._check(anew=False):
                    with atomic_file(self._parts / "files.jsonl") as file:
                        for path, frame in source.pictures:
                            entry = str(path) if frame is None else [str(path), frame]
                            file.write(json.dumps(entry).encode() + b"\n")
                    manifest.write(folder)
                elif self.totals() is not None:
                    self._clear()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give up all locks; nothing more can be done with the ledger."""
        self._locks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def totals(self) -> Totals | None:
        """What was found, once the run is complete."""
        stored = read_manifest(self._folder)
        return None if stored is None else stored.totals

    def _check(self, *, anew: bool) -> bool:
        """Whether this very run was begun here; other results are refused."""
        stored = read_manifest(self._folder)
        if stored is None:
            # A kill before the manifest was written leaves these.
            foreign = _names(self._folder) - {"parts", f".{_NAME}.part"}
            foreign |= _names(self._parts) - {"locks", "files.jsonl", ".files.jsonl.part"}
            if anew and foreign:
                raise UsageError(str(self._folder), "the folder is not empty", "name a new one, or delete it")
            return False
        wanted, held = asdict(self._manifest), asdict(replace(stored, totals=None))
        other = [name for name in wanted if wanted[name] != held[name]]
        if other:
            why = f"it holds other results (of another {_WORDS[other[0]]})"
            raise UsageError(str(self._folder), why, "name a new folder, or delete it")
        return True

    def open_parts(self, shard: int, shards: int) -> Generator[tuple[int, list[PictureFile]], None, None]:
        """The parts of this shard that nobody has done or is at work on, each locked until the next is asked for."""
        manifest = self._manifest
        if self.totals() is not None:
            return
        try:
            lines = (self._parts / "files.jsonl").open("rb")
        except FileNotFoundError:
            if self.totals() is not None:
                return  # completed by another process just now
            raise
        with lines:
            for part in range(manifest.parts):
                names = list(islice(lines, manifest.part))
                if part % shards != shard or self._path(part).exists():
                    continue
                if not self._locks.acquire(part):
                    continue  # another process is at it
                try:
                    if self._path(part).exists():
                        continue
                    if self.totals() is not None:
                        return  # another process has finished all and taken the parts away
                    yield part, [_picture(json.loads(name)) for name in names]
                finally:
                    self._locks.release(part)

    def store(self, part: int, records: list[Record]) -> None:
        atomic_write(self._path(part), b"".join(record.to_line() for record in records))

    def done(self) -> int:
        """Files in the parts that are done."""
        manifest = self._manifest
        if self.totals() is not None:
            return manifest.files
        parts = [number for number in range(manifest.parts) if self._path(number).exists()]
        return sum(min(manifest.part, manifest.files - number * manifest.part) for number in parts)

    def records(self) -> Iterator[Record]:
        """Of all parts, in the order of the source."""
        for part in range(self._manifest.parts):
            path = self._path(part)
            try:
                with path.open("rb") as lines:
                    for line in lines:
                        yield Record.from_line(line)
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(str(path), "the part is damaged", "delete it, and run the command again") from error

    @contextmanager
    def ending(self) -> Iterator[bool]:
        """Inside, no other process ends the run; whether it is to be ended now: all done, but not yet complete."""
        with self._locks.held(_END):
            yield self.totals() is None and self.done() == self._manifest.files
        if self.totals() is not None:
            self._clear()  # waiting for the lock may have made the folder again after another process had ended the run

    def finish(self, totals: Totals) -> None:
        """The results are written: say so, and take the parts away."""
        replace(self._manifest, totals=totals).write(self._folder)
        self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self._parts, ignore_errors=True)

    def _path(self, part: int) -> Path:
        return self._parts / f"{part:06d}.jsonl"


_WORDS = {
    "naming": "naming of types",
    "version": "version of tusk",
    "model": "model",
    "source": "source",
    "files": "number of files",
    "names": "set of files",
    "part": "number of files",
    "keypoints": "--keypoints",
    "min_score": "--min-score",
    "min_gain": "--min-gain",
    "batch": "--batch",
    "masks": "--masks",
    "overlays": "--overlays",
    "detection": "--detection setting",
}


def read_manifest(folder: Path) -> Manifest | None:
    """That of the run in this folder; None where there is none."""
    path = folder / _NAME
    if not path.is_file():
        return None
    try:
        values: dict[str, Any] = json.loads(path.read_bytes())
        totals = values.pop("totals")
        return Manifest(**values, totals=None if totals is None else Totals.from_json(totals))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(str(folder), "it holds other results", "name a new folder, or delete it") from error


def _picture(entry: str | list[Any]) -> PictureFile:
    path, frame = (entry, None) if isinstance(entry, str) else entry
    return PictureFile(Path(path), frame)


def _names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()} if folder.is_dir() else set()
