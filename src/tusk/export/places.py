"""Names of the files that are made of each picture: one for each, below one folder, on every system."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tusk.names import path_inside

# Control characters, bytes that are no text, and what Windows does not let into a name.
_UNSAFE = re.compile('[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff<>:"|?*\\\\]')


def file_places(pictures: Sequence[str], ending: str) -> list[Path]:
    """Pictures' names -> relative paths, a.png -> a.txt for the ending '.txt'; where two pictures would have one and
    the same, a.png.txt. A name with characters that not every system takes is told from others by a checksum."""
    bare = [_portable(path_inside(str(Path(name).with_suffix("")), "")) for name in pictures]
    whole = [_portable(path_inside(name, "")) for name in pictures]
    once = _once(bare)
    places = [short if alone else path for short, path, alone in zip(bare, whole, once, strict=True)]
    # a.png and A.PNG are one file on many systems.
    return [
        _ended(place if alone else place.with_name(f"{place.name}~{_checksum(name)}"), ending)
        for place, name, alone in zip(places, pictures, _once(places), strict=True)
    ]


def _once(places: Sequence[Path]) -> list[bool]:
    """Whether each is told from all others by more than small and capital letters."""
    often = Counter(str(place).casefold() for place in places)
    return [often[str(place).casefold()] == 1 for place in places]


def _ended(path: Path, ending: str) -> Path:
    name = path_inside(path.name, ending)  # cut where it would be too long with the ending
    return path.parent / name


def _portable(path: Path) -> Path:
    return Path(*(_piece(piece) for piece in path.parts))


def _piece(name: str) -> str:
    safe = _UNSAFE.sub("_", name).rstrip(". ") or "_"
    return safe if safe == name else f"{safe}~{_checksum(name)}"


def _checksum(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
