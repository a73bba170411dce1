"""What was found in the pictures of a session, before any names: kept small, so that sliders and names act at once."""

from __future__ import annotations

import io
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.data.framing import fit_picture
from tusk.detection.detections import Detections, UInt16Array
from tusk.detection.predictor import Predictor
from tusk.model.storage import StoredModel
from tusk.serve.pictures import ShownPicture

_MOST_PICTURES = 2000
_MOST_MASKS = 128 << 20  # bytes
_CROP = 72  # pixels of a side
_SAMPLE = 6000  # points whose crops and descriptors are kept

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """One picture: every keypoint, with the masks of all of them as a PNG."""

    detections: Detections  # without its mask map
    mask_png: bytes | None

    def with_masks(self) -> Detections:
        """As `tusk detect` gives it."""
        return replace(self.detections, mask_map=None if self.mask_png is None else mask_of(self.mask_png))


@dataclass(frozen=True)
class SamplePoint:
    """A point that types are shown by, split by, and taught by."""

    picture: int
    instance: int
    crop: bytes  # PNG


class FoundPictures:
    """Detections by the number of the picture; the ones looked at least are forgotten when there are too many."""

    def __init__(self, model: StoredModel, keypoints: int | None) -> None:
        self._model = model
        self._predictor = Predictor(model, keypoints, min_gain=-math.inf)
        self._lock = threading.Lock()
        self._found: OrderedDict[int, Found] = OrderedDict()
        self._mask_bytes = 0
        self._points: dict[int, list[SamplePoint]] = {}

    def get(self, number: int) -> Found | None:
        """None where nobody has looked yet."""
        with self._lock:
            found = self._found.get(number)
            if found is not None:
                self._found.move_to_end(number)
            return found

    def all(self) -> dict[int, Found]:
        """Those that were looked at, in the order of their numbers."""
        with self._lock:
            return dict(sorted(self._found.items()))

    def points(self) -> list[SamplePoint]:
        """Of all pictures that were looked at, up to a number."""
        with self._lock:
            return [point for points in self._points.values() for point in points]

    def detect(self, picture: ShownPicture) -> Found:
        """In the thread of jobs alone: the network."""
        known = self.get(picture.number)
        if known is not None:
            return known
        found, pixels = detect_one(self._model, self._predictor, picture)
        mask = None if found.mask_map is None else _mask_png(found.mask_map)
        kept = Found(replace(found, mask_map=None), mask)
        points = self._crops(picture.number, found, pixels)
        with self._lock:
            self._found[picture.number] = kept
            self._mask_bytes += len(mask or b"")
            if points:
                self._points[picture.number] = points
            while len(self._found) > _MOST_PICTURES or (self._mask_bytes > _MOST_MASKS and len(self._found) > 1):
                number, old = self._found.popitem(last=False)
                self._mask_bytes -= len(old.mask_png or b"")
                self._points.pop(number, None)
        return kept

    def forget(self, number: int) -> None:
        """A picture that is not shown any more."""
        with self._lock:
            old = self._found.pop(number, None)
            self._mask_bytes -= len((old.mask_png if old is not None else None) or b"")
            self._points.pop(number, None)

    def _crops(self, number: int, found: Detections, pixels: npt.NDArray[np.uint8]) -> list[SamplePoint]:
        with self._lock:
            room = _SAMPLE - sum(map(len, self._points.values()))
        scale = pixels.shape[1] / found.width
        least = 24 * max(1.0, min(pixels.shape[:2]) / 400)
        points = []
        for one in list(replace(found, mask_map=None))[: max(0, room)]:
            side = max(least, 1.5 * (found.box_side if found.size is None else one.size) * scale)
            points.append(SamplePoint(number, one.instance, crop_png(pixels, one.x * scale, one.y * scale, side)))
        return points


def detect_one(
    model: StoredModel, predictor: Predictor, picture: ShownPicture
) -> tuple[Detections, npt.NDArray[np.uint8]]:
    """-> what is in it, and its pixels, which may have been shrunk while decoding."""
    config = model.config
    read = picture.read(None if config.data.fit == "tiles" else 2 * config.data.size)
    fitted = fit_picture(read, picture.name, config.data, config.model.multiple)
    return predictor.detect_fitted([fitted])[0], read.pixels


def crop_png(pixels: npt.NDArray[np.uint8], x: float, y: float, side: float) -> bytes:
    """The square around a point; black where it reaches over the picture's edge."""
    half = side / 2
    box = (x + 0.5 - half, y + 0.5 - half, x + 0.5 + half, y + 0.5 + half)
    left, top = math.floor(box[0]), math.floor(box[1])
    right, bottom = math.ceil(box[2]), math.ceil(box[3])
    height, width = pixels.shape[:2]
    around = np.zeros((bottom - top, right - left, 3), np.uint8)
    rows, columns = slice(max(top, 0), min(bottom, height)), slice(max(left, 0), min(right, width))
    if rows.start < rows.stop and columns.start < columns.stop:
        inside = pixels[rows, columns]
        around[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = inside
    sampling = Image.Resampling.NEAREST if side < _CROP / 2 else Image.Resampling.BICUBIC
    return as_png(Image.fromarray(around).resize((_CROP, _CROP), sampling))


def as_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def _mask_png(mask_map: UInt16Array) -> bytes:
    """16 bits, without loss."""
    return as_png(Image.fromarray(mask_map))


def mask_of(png: bytes) -> UInt16Array:
    """The map that the PNG was made of."""
    with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
        return np.asarray(image).astype(np.uint16)


def mask_for_page(png: bytes, longest: int) -> bytes:
    """Red and green are the low and high byte of 1 + the instance: a browser's canvas has no 16-bit pixels."""
    values = mask_of(png)
    step = max(1, -(-max(values.shape) // longest))
    values = values[::step, ::step]
    colours = np.stack([values & 255, values >> 8, np.zeros_like(values)], -1).astype(np.uint8)
    return as_png(Image.fromarray(colours))
