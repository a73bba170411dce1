"""Reads one picture from an untrusted file into (H, W, 3) RGB bytes, or says in plain words why it cannot.

What is decided here, once, for every reader in the package:

- The format is known by the first bytes of the file, never by its name: PNG, JPEG, WebP, BMP, TIFF, GIF. Of several
  frames the first is meant, unless another one of a TIFF or GIF is asked for.
- The size in the header is held against `MAX_PIXELS` before any pixel is decoded or any memory for it is taken.
- EXIF orientation is honoured: pixels and sizes are as the picture is meant to be seen.
- Transparency, palettes, inks and more than 8 bits become RGB bytes by the rules of `tones.py`.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from tusk.data.dataset import UInt8Array
from tusk.data.formats.pages import gif_frames
from tusk.data.tones import to_rgb
from tusk.errors import DataError

Result = TypeVar("Result")

MAX_PIXELS = 64_000_000
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".tif", ".tiff", ".gif"})

_REPLACE = "remove it or replace it with an intact copy"
_FORMATS = "PNG, JPEG, WebP, BMP, TIFF, GIF"
_HEADER_BYTES = 32


@dataclass(frozen=True)
class Picture:
    """Decoded pixels, and where they lie in the picture as stored in the file (seen the right way up).

    A JPEG may have been shrunk by 2, 4 or 8 while decoding. Its last row and column then reach beyond the original's
    edge; where the orientation turns the picture round they become the first, which is what `left` and `top` tell.
    """

    pixels: UInt8Array  # (h, w, 3)
    original_width: int
    original_height: int
    shrink: int = 1  # original pixels per pixel, in both directions
    left: int = 0  # how many original pixels the first column starts before the original's left edge
    top: int = 0

    def to_original(self, points: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(..., 2) x, y in `pixels` -> x, y in the original; (0, 0) is the centre of the top-left pixel in both."""
        shift: npt.NDArray[np.float64] = np.array([self.left, self.top]) + 0.5
        return (np.asarray(points, np.float64) + 0.5) * self.shrink - shift

    def box(self, left: float, top: float, width: float, height: float) -> tuple[float, float, float, float]:
        """A rectangle of the original, by its edges, as left, top, right, bottom in `pixels`."""
        x, y = left + self.left, top + self.top
        return x / self.shrink, y / self.shrink, (x + width) / self.shrink, (y + height) / self.shrink


def read_image(path: str | Path, *, smallest_side: int | None = None) -> UInt8Array:
    """The pixels alone, (H, W, 3) RGB; see `read_picture`."""
    return read_picture(path, smallest_side=smallest_side).pixels


def read_picture(
    path: str | Path, *, smallest_side: int | None = None, frame: int | None = None, content: bytes | None = None
) -> Picture:
    """Decode one file.

    With `smallest_side` the caller says how small a shorter side would still do: a JPEG larger than that is decoded
    straight to a half, a quarter or an eighth of its size, which is several times faster. It never comes out smaller.
    With `frame` it is that one of a TIFF or GIF, counted from 0. With `content` nothing is opened: those are the bytes,
    and the path only names them.
    """
    with _opened(Path(path), content) as image:
        if frame:
            _check_frames(Path(path), image, frame)
            _seek(Path(path), image, frame)
        return _decoded(image, smallest_side)


def decode_picture(content: bytes, name: str, *, smallest_side: int | None = None) -> Picture:
    """The same for a file that was read already; `name` is what faults call it."""
    with _opened(Path(name), content) as image:
        return _decoded(image, smallest_side)


def read_frames(
    path: str | Path, frames: Sequence[int], use: Callable[[int, Picture], Result]
) -> list[Result | DataError]:
    """What `use` makes of each of these frames of a TIFF or GIF, or what is wrong with it; one is held at a time.

    In rising order: to get at a frame of a GIF, all before it are decoded, and this does it once for all of them.
    """
    made: list[Result | DataError] = []
    with _opened(Path(path)) as image:
        _check_frames(Path(path), image, max(frames))
        for frame in frames:
            try:
                _seek(Path(path), image, frame)
                made.append(use(frame, _decoded(image, None)))
            except Exception as error:
                made.append(_fault(Path(path), error))
    return made


def _check_frames(path: Path, image: ImageFile, last: int) -> None:
    """A frame of a GIF may reach beyond the first one and enlarge the picture, which Pillow finds while decoding."""
    if isinstance(image, GifImageFile) and image.fp is not None:
        at = image.fp.tell()
        reach = list(islice(gif_frames(image.fp), last + 1))
        image.fp.seek(at)
        _check_size(path, (max(one.right for one in reach), max(one.bottom for one in reach)))


def _seek(path: Path, image: ImageFile, frame: int) -> None:
    """To a frame, whose size is held against the limit before it is decoded."""
    image.seek(frame)
    _check_size(path, *_extents(image))


def _decoded(image: ImageFile, smallest_side: int | None) -> Picture:
    stored_width, stored_height = image.size
    if smallest_side is not None:
        image.draft(None, (max(1, smallest_side), max(1, smallest_side)))
    shrink = _shrink(stored_width, image.size[0])
    image.load()
    # Pillow itself turns a TIFF while loading it.
    orientation = 1 if isinstance(image, TiffImageFile) else _orientation(image)
    pixels = to_rgb(image)

    swap, flip_x, flip_y = _moves(orientation)
    if swap:
        pixels = pixels.swapaxes(0, 1)
        stored_width, stored_height = stored_height, stored_width
    height, width = pixels.shape[:2]
    original_width, original_height = (stored_width, stored_height) if shrink > 1 else (width, height)
    return Picture(
        pixels=np.array(pixels[:: -1 if flip_y else 1, :: -1 if flip_x else 1], order="C"),
        original_width=original_width,
        original_height=original_height,
        shrink=shrink,
        left=shrink * width - original_width if flip_x else 0,
        top=shrink * height - original_height if flip_y else 0,
    )


def image_size(path: str | Path) -> tuple[int, int]:
    """(width, height) as the picture is meant to be seen; from the header alone wherever the format allows it."""
    with _opened(Path(path)) as image:
        width, height = image.size
        if isinstance(image, TiffImageFile):
            # Whether Pillow gives a TIFF's size as stored or as seen depends on its version; the tags do not.
            width, height = int(image.tag_v2[256]), int(image.tag_v2[257])
        swap, _, _ = _moves(_orientation(image))
    return (height, width) if swap else (width, height)


def is_image(path: Path) -> bool:
    """Whether the file begins like one of the known formats."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return _opener(stream.read(_HEADER_BYTES)) is not None
    except OSError:
        return False


@contextmanager
def _opened(path: Path, content: bytes | None = None) -> Iterator[ImageFile]:
    """The picture with its header read and its size found acceptable; whatever goes wrong comes out as a DataError."""
    try:
        # A named pipe would make `open` wait for ever.
        if content is None and path.exists() and not path.is_file():
            raise DataError(str(path), "is a folder or a device, not a file", "give the path of a picture")
        with path.open("rb") if content is None else io.BytesIO(content) as stream, _quiet:
            header = stream.read(_HEADER_BYTES)
            stream.seek(0)
            if not header:
                raise DataError(str(path), "the file is empty", _REPLACE)
            opener = _opener(header)
            if opener is None:
                raise DataError(str(path), f"is not a picture of a known format ({_FORMATS})", _REPLACE)
            # Pillow takes memory for a WebP's whole canvas on opening it.
            _check_size(path, _webp_size(header))
            image = opener(stream)
            _check_size(path, *_extents(image))
            yield image
    except Exception as error:
        fault = _fault(path, error)
        raise fault from (None if fault is error else error)


def _fault(path: Path, error: Exception) -> DataError:
    """Whatever went wrong with a file, in plain words."""
    if isinstance(error, DataError):
        return error
    if isinstance(error, FileNotFoundError):
        return DataError(str(path), "there is no such file", "check the path")
    if isinstance(error, PermissionError):
        return DataError(str(path), "you have no permission to read it", "change its permissions")
    if isinstance(error, MemoryError):
        return DataError(str(path), "there is not enough memory to decode it", "shrink it, or free memory")
    if isinstance(error, Image.DecompressionBombError):
        # TIFF and WebP ask Pillow's own limit once more, far above ours unless something in this process lowered it.
        why = "is larger than Image.MAX_IMAGE_PIXELS, Pillow's limit for this process, allows"
        return DataError(str(path), why, "raise that limit, or shrink the picture")
    # Pillow's plugins raise whatever they stumble over in a damaged file: struct.error, KeyError, SyntaxError, ...
    detail = " ".join(str(error).split()) or type(error).__name__
    return DataError(str(path), f"is damaged, cut short or of an unusual kind ({detail})", _REPLACE)


class _Quiet:
    """No remarks of Pillow on odd metadata. Filters are the whole process's: the first reader sets, the last resets."""

    def __init__(self) -> None:
        self._lock, self._inside, self._filters = threading.Lock(), 0, warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._filters.__exit__(None, None, None)


_quiet = _Quiet()


def _opener(header: bytes) -> Callable[[IO[bytes]], ImageFile] | None:
    """What reads a file with these first bytes.

    Not `Image.open`: it warns or refuses by `Image.MAX_IMAGE_PIXELS`, a global that any other package may have set.
    """
    if header.startswith(b"\x89PNG\r\n\x1a\n"):
        return PngImageFile
    if header.startswith(b"\xff\xd8\xff"):
        return JpegImageFile
    if header.startswith(b"RIFF") and header[8:12] == b"WEBP":
        return WebPImageFile
    if header.startswith(b"BM"):
        return BmpImageFile
    if header.startswith((b"GIF87a", b"GIF89a")):
        return GifImageFile
    if header.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return TiffImageFile
    return None


def _webp_size(header: bytes) -> tuple[int, int]:
    """Width and height of a WebP of any of its three kinds; (0, 0) for anything else."""
    if not header.startswith(b"RIFF") or len(header) < 30:
        return 0, 0
    kind = header[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(header[24:27], "little"), 1 + int.from_bytes(header[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(header[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        return int.from_bytes(header[26:28], "little") & 0x3FFF, int.from_bytes(header[28:30], "little") & 0x3FFF
    return 0, 0


def _extents(image: ImageFile) -> Iterator[tuple[int, int]]:
    """Every rectangle that decoding takes memory for: the picture, and one tile of a TIFF."""
    yield image.size
    if isinstance(image, TiffImageFile):
        yield int(image.tag_v2.get(322, 0)), int(image.tag_v2.get(323, 0))


def _check_size(path: Path, *sizes: tuple[int, int]) -> None:
    for width, height in sizes:
        if width * height > MAX_PIXELS:
            limit = f"more than the limit of {MAX_PIXELS // 1_000_000} million pixels"
            raise DataError(str(path), f"its header says {width} x {height}, {limit}", "shrink it or cut it into tiles")


def _shrink(stored: int, decoded: int) -> int:
    return next(factor for factor in (1, 2, 4, 8) if -(-stored // factor) == decoded)


def _orientation(image: ImageFile) -> int:
    """EXIF orientation, 1..8. Broken EXIF around sound pixels means upright, not a refusal."""
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _moves(orientation: int) -> tuple[bool, bool, bool]:
    """Swap the axes, then mirror x, then mirror y, to see a picture of that orientation upright."""
    return orientation >= 5, orientation in (2, 3, 6, 7), orientation in (3, 4, 7, 8)
