"""Widths and heights of a folder of images: read from the files' headers once, then kept in a small index.

The index lives in the cache folder, never beside the images, and may be deleted at any time. It is made anew when a
file is added to the folder of images or removed from it.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from tusk.data.cache import default_cache_dir
from tusk.data.dataset import Int64Array
from tusk.data.images import image_size
from tusk.io import atomic_write


def image_sizes(folder: Path, names: list[str], cache: Path | None) -> Int64Array:
    """(N, 2) width and height of each of the named images."""
    folder = folder.resolve()
    key = hashlib.sha256(f"{folder}\n{folder.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    path = (cache or default_cache_dir()) / f"image-sizes-{key}.npz"
    known = _load(path)
    unknown = [name for name in names if name not in known]
    for name in unknown:
        known[name] = image_size(folder / name)
    if unknown:
        # Without an index everything works, only slower: a full or read-only disk is no reason to stop.
        with suppress(OSError):
            _save(path, known)
    return np.array([known[name] for name in names], np.int64).reshape(-1, 2)


def _load(path: Path) -> dict[str, tuple[int, int]]:
    try:
        with np.load(path, allow_pickle=False) as index:
            names, sizes = index["names"].tolist(), index["sizes"].tolist()
        return {str(name): (int(width), int(height)) for name, (width, height) in zip(names, sizes, strict=True)}
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return {}  # none yet, or damaged: it is made anew


def _save(path: Path, known: dict[str, tuple[int, int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez(content, names=np.array(list(known), np.str_), sizes=np.array(list(known.values()), np.int32))
    atomic_write(path, content.getvalue(), flushed=False)  # it can be made again
