"""The pictures of a session: those of the folder that was named, and those that were dropped onto the page.

A picture is asked for by its number alone. No path ever comes in from outside, and a link in the folder that leads out
of it is not followed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tusk.data.images import Picture, read_picture
from tusk.data.sources import Source
from tusk.errors import DataError
from tusk.names import as_text
from tusk.naming.edits import PictureKey

_MOST_DROPPED = 256 << 20  # bytes of pictures that were dropped; the oldest are forgotten
_LONGEST = 200  # letters of a name


@dataclass(frozen=True)
class ShownPicture:
    """One picture, by a file or by its bytes."""

    number: int
    name: str
    path: Path | None = None
    frame: int | None = None
    content: bytes | None = None

    def read(self, smallest_side: int | None = None) -> Picture:
        """Its pixels; whatever is wrong with it is said with its name only."""
        try:
            where = self.name if self.path is None else self.path
            return read_picture(where, smallest_side=smallest_side, frame=self.frame, content=self.content)
        except DataError as error:
            raise DataError(self.name, error.why, error.fix) from error

    def key(self) -> PictureKey:
        """What a correction is tied to."""
        content = self.content
        if content is None:
            assert self.path is not None
            try:
                content = self.path.read_bytes()
            except OSError as error:
                raise DataError(self.name, f"it cannot be read ({error.strerror})", "put it back") from error
        return PictureKey(name=as_text(self.name), sha256=hashlib.sha256(content).hexdigest(), frame=self.frame)


class Pictures:
    """By number; they are never reused."""

    def __init__(self, source: Source | None = None) -> None:
        self._lock = threading.Lock()
        self._next, self._bytes = 0, 0
        self._shown: dict[int, ShownPicture] = {}
        self.left_out = 0  # files that a link leads to, outside of the folder
        if source is not None:
            self._add_files(source)

    def __len__(self) -> int:
        return len(self._shown)

    def all(self) -> list[ShownPicture]:
        """In order."""
        with self._lock:
            return list(self._shown.values())

    def get(self, number: int) -> ShownPicture | None:
        """None where there is no such picture (any more)."""
        with self._lock:
            return self._shown.get(number)

    def add(self, name: str, content: bytes) -> ShownPicture:
        """One that was dropped; -> it, once the oldest have made room."""
        with self._lock:
            picture = ShownPicture(self._next, self._free(as_text(clean_name(name))), content=content)
            self._next += 1
            self._bytes += len(content)
            self._shown[picture.number] = picture
            for old in [one for one in self._shown.values() if one.content is not None]:
                if self._bytes <= _MOST_DROPPED or old is picture:
                    break
                self._bytes -= len(old.content or b"")
                del self._shown[old.number]
            return picture

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget some that were dropped; files of the folder stay."""
        with self._lock:
            for number in numbers:
                one = self._shown.get(number)
                if one is not None and one.content is not None:
                    self._bytes -= len(one.content)
                    del self._shown[number]

    def _free(self, name: str) -> str:
        """The name, or one like it that no other picture has: files that are exported are told apart by it."""
        taken = {one.name for one in self._shown.values()}
        stem, dot, ending = name.rpartition(".") if "." in name else (name, "", "")
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{stem} ({number}){dot}{ending}"
        return free

    def _add_files(self, source: Source) -> None:
        root = source.root.resolve()
        for path, frame in source.pictures:
            if not path.resolve().is_relative_to(root):
                self.left_out += 1
                continue
            name = as_text(source.label(path, frame))
            self._shown[self._next] = replace(ShownPicture(self._next, name), path=path, frame=frame)
            self._next += 1


def clean_name(name: str) -> str:
    """The last part of what a browser calls a file, without what cannot be seen."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(letter for letter in last if letter.isprintable())[:_LONGEST].strip(" .")
    return kept or "picture"
