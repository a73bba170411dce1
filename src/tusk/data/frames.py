"""Files that hold several pictures: only the first of them is meant, or every one.

Frames of animated PNG and WebP files are not looked for: the first stands for all.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tusk.config.data import Frames
from tusk.data.formats.pages import MAX_FRAMES, find_frames
from tusk.data.images import SUFFIXES
from tusk.data.sources import Skipped, Source

_SINGLE = SUFFIXES - {".tif", ".tiff", ".gif"}  # what these hold is one picture, and need not be looked into


def with_frames(source: Source, frames: Frames) -> Source:
    """The source with every frame of its files as a picture (`all`), or with the number of those that are ignored."""
    files: list[Path] = []
    numbers: list[int | None] = []
    unreadable = list(source.unreadable)
    ignored = ignored_in = 0
    for file in source.files:
        found = (0,) if file.suffix.lower() in _SINGLE else find_frames(file)
        if frames == "all" and len(found) > MAX_FRAMES:
            why = f"it has more than {MAX_FRAMES:,} frames; cut it into several files"
            unreadable.append(Skipped(file, why))
            continue
        several = frames == "all" and len(found) > 1
        files += [file] * len(found) if several else [file]
        numbers += found if several else [None]
        if frames == "first" and len(found) > 1:
            ignored, ignored_in = ignored + len(found) - 1, ignored_in + 1
    return replace(
        source,
        files=tuple(files),
        frames=tuple(numbers) if any(number is not None for number in numbers) else (),
        unreadable=tuple(unreadable),
        ignored_frames=ignored,
        ignored_in=ignored_in,
    )
