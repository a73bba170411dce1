"""Pictures and shards behind a URL (`https://`, `s3://`, `gs://`, `hf://` ...), by fsspec, through a cache on disk.

Nothing is read from the network unless a source is such a URL. A file is copied once, under a temporary name that is
then renamed; where the copies of shards take more than TUSK_REMOTE_CACHE_GB (100 by itself), the oldest go first.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tusk.data.cache import default_cache_dir
from tusk.errors import DataError, UsageError
from tusk.names import as_url

Result = TypeVar("Result")
_MOST_GB = 100.0
_LONGEST = 100  # letters of a file's name in the cache


def is_url(source: str) -> bool:
    """Whether this names something by a URL, and nothing that lies here."""
    return as_url(source) is not None and not Path(source).exists()


def remote_exists(url: str) -> bool:
    files, path = _filesystem(url)
    return bool(_tried(url, lambda: files.isfile(path)))


def local_copy(url: str, *, fresh: bool = False) -> Path:
    """The file behind a URL, copied into the cache where it is not there; `fresh`: in any case."""
    files, path = _filesystem(url)
    folder, _, name = url.rpartition("/")
    place = _folder_of(folder) / name[-_LONGEST:]
    if place.is_file() and not fresh:
        with suppress(OSError):
            os.utime(place)  # the oldest are those that were used longest ago
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as target:
            _tried(url, lambda: _copy(files, path, target))
        Path(temporary).replace(place)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    _make_room(place)
    return place


def mirror(url: str, wanted: Callable[[str], bool]) -> Path:
    """A local folder with the files below a URL whose names are wanted; what is there in that size is not copied again.

    A URL of a single file gives that file.
    """
    files, path = _filesystem(url)
    # By the name too: to a web server, the page that lists a folder is a file.
    if wanted(path.rstrip("/").rpartition("/")[2]) and _tried(url, lambda: files.isfile(path)):
        return local_copy(url)
    found = _tried(url, lambda: files.find(path, detail=True))
    if not found:
        _tried(url, lambda: files.ls(path))  # says why, where `find` leaves out what it cannot list
    root = _folder_of(url.rstrip("/"))
    start = path.strip("/")
    for full, info in found.items():
        inside = full.strip("/")[len(start) :].lstrip("/")
        parts = inside.split("/")
        if not wanted(inside) or any(part in ("", ".", "..") for part in parts):
            continue
        target = root.joinpath(*parts)
        if target.is_file():
            size = info.get("size")
            if size is None:  # web servers tell it for one file at a time
                size = _tried(url, lambda full=full: files.size(full))  # type: ignore[misc]
            if target.stat().st_size == size:
                continue
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        with part.open("wb") as stream:
            _tried(url, lambda full=full, stream=stream: _copy(files, full, stream))  # type: ignore[misc]
        part.replace(target)
    root.mkdir(parents=True, exist_ok=True)
    return root


def upload(folder: Path, url: str, names: list[str]) -> None:
    """Files of a folder to below a URL, in this order."""
    files, path = _filesystem(url)
    for name in names:
        _tried(url, lambda name=name: files.put_file(str(folder / name), f"{path.rstrip('/')}/{name}"))  # type: ignore[misc]


def _filesystem(url: str) -> tuple[Any, str]:
    """fsspec's file system and the path in it."""
    try:
        import fsspec
    except ImportError as error:
        fix = "install tusk with its 'remote' extra: pip install 'tusk-keypoints[remote]'"
        raise UsageError(url, "reading from a URL needs fsspec, which is not installed", fix) from error
    try:
        files, path = fsspec.core.url_to_fs(as_url(url) or url)
    except ImportError as error:
        raise UsageError(url, f"its kind needs one more package ({error})", "install that package") from error
    except ValueError as error:
        raise UsageError(url, f"fsspec does not know its kind ({error})", "check the URL") from error
    return files, path


def _tried(url: str, work: Callable[[], Result]) -> Result:
    """What the network says when it fails, in one sentence."""
    try:
        return work()
    except FileNotFoundError as error:
        raise DataError(url, "there is nothing at this URL", "check it, and who may read it") from error
    except (OSError, RuntimeError, ValueError) as error:
        words = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise DataError(
            url, f"it cannot be read ({words})", "check the URL, the connection and who may read it"
        ) from error


def _copy(files: Any, path: str, target: Any) -> None:
    with files.open(path, "rb") as source:
        shutil.copyfileobj(source, target, 8 << 20)


def _folder_of(url: str) -> Path:
    name = re.sub(r"[^\w.-]", "_", url.rstrip("/").rpartition("/")[2][:40]) or "root"
    return default_cache_dir() / "remote" / f"{name}-{hashlib.sha256(url.rstrip('/').encode()).hexdigest()[:16]}"


def _make_room(newest: Path) -> None:
    try:
        most = float(os.environ.get("TUSK_REMOTE_CACHE_GB", _MOST_GB)) * 1e9
    except ValueError:
        most = _MOST_GB * 1e9
    shards = [file for file in newest.parent.parent.glob("*/shard-*.bin") if file != newest]
    sizes: dict[Path, tuple[float, int]] = {}
    for file in shards:
        with suppress(OSError):
            status = file.stat()
            sizes[file] = status.st_mtime, status.st_size
    total = newest.stat().st_size + sum(size for _, size in sizes.values())
    for file in sorted(sizes, key=lambda one: sizes[one][0]):
        if total <= most:
            break
        with suppress(OSError):  # on Windows, one that is in use stays
            file.unlink()
            total -= sizes[file][1]
