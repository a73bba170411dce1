"""CLEVR: a folder of rendered scenes, read as it is. The original TFRecord file: see `clevr_original.py`.

    images/NAME.jpg or .png      masks/NAME.png (0 background, i = object i)
    scenes/NAME.json             a list, object i at place i-1: shape, color, size, material, pixel [x, y, depth], ...
    splits.json                  optional: {"train": [NAME, ...], "test": [...], ...}

CLEVR counts `pixel` from the image's corner, so half a pixel is taken off: here (0, 0) is the first pixel's centre.
"""

from __future__ import annotations

import json
import math
import operator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tusk.data.dataset import Attribute, Float32Array, Truth, UInt8Array
from tusk.data.images import image_size, read_image
from tusk.data.synthetic.clevr.scene import COLORS, MATERIALS, SHAPES, SIZES
from tusk.errors import DataError, UsageError, nearest

ATTRIBUTE_NAMES: dict[str, tuple[str, ...]] = {
    "shape": SHAPES,
    "color": COLORS,
    "size": SIZES,
    "material": MATERIALS,
}
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")


class ClevrScenes:
    """The scenes of a folder, or of one split of it."""

    name = "clevr"
    class_names: tuple[str, ...] = ()

    def __init__(self, folder: Path | str, split: str | None = None) -> None:
        self.folder, self.split = Path(folder), split
        images = self.folder / "images"
        if not images.is_dir():
            raise DataError(str(self.folder), "has no folder 'images'", "give a folder of CLEVR scenes")
        files = sorted(path for path in images.iterdir() if path.suffix.lower() in _IMAGE_SUFFIXES)
        if not files:
            raise DataError(str(images), "holds no JPEG or PNG image", "give a folder of CLEVR scenes")
        self._files = files if split is None else self._of_split(split, files)
        self._has_truth = (self.folder / "masks").is_dir() and (self.folder / "scenes").is_dir()

    def __len__(self) -> int:
        return len(self._files)

    def image(self, index: int) -> UInt8Array:
        return read_image(self.picture_file(index))

    def truth(self, index: int) -> Truth | None:
        """None where the folder has no masks or no scenes; an object hidden altogether has NaN for point and box."""
        file = self.picture_file(index)
        if not self._has_truth:
            return None
        mask_file = self.folder / "masks" / f"{file.stem}.png"
        scene_file = self.folder / "scenes" / f"{file.stem}.json"
        mask = _read_mask(mask_file)
        scene = _read_json(scene_file)
        if not isinstance(scene, list) or not all(isinstance(thing, dict) for thing in scene):
            raise DataError(str(scene_file), "is not a list of objects", "give one entry for every object of the scene")
        if mask.max() > len(scene):
            why = f"has object {mask.max()} where {scene_file.name} lists {len(scene)}"
            raise DataError(str(mask_file), why, "give the mask and the scene of the same image")
        pixels = np.array([_pixel(thing, number, scene_file) for number, thing in enumerate(scene, start=1)])
        attributes = {
            name: Attribute(np.array([_code(thing, name, scene_file) for thing in scene], np.int64), names)
            for name, names in ATTRIBUTE_NAMES.items()
        }
        return scene_truth(pixels.reshape(-1, 2) - 0.5, mask, attributes)

    def picture_file(self, index: int) -> Path:
        try:
            return self._files[operator.index(index)]
        except IndexError:
            raise IndexError(f"{self.folder} has {len(self):,} images, not one at {index}") from None

    def _of_split(self, split: str, files: list[Path]) -> list[Path]:
        listing = self.folder / "splits.json"
        if not listing.is_file():
            raise UsageError("split", f"{self.folder} has no splits.json to find '{split}' in", "leave the split out")
        splits = _read_json(listing)
        if not isinstance(splits, dict) or not all(isinstance(names, list) for names in splits.values()):
            raise DataError(str(listing), "is not a map from splits to names", "write {'train': ['NAME', ...], ...}")
        if split not in splits:
            raise UsageError("split", f"{listing} has no '{split}'", nearest(split, splits))
        by_name = {path.stem: path for path in files}
        missing = [name for name in splits[split] if not isinstance(name, str) or name not in by_name]
        if missing or not splits[split]:
            why = f"'{split}' names {missing[0]!r}, which is not there" if missing else f"'{split}' is empty"
            raise DataError(str(listing), why, f"list names from {self.folder / 'images'}")
        return [by_name[name] for name in splits[split]]


def scene_truth(points: Any, mask: UInt8Array, attributes: dict[str, Attribute]) -> Truth:
    """The truth of one scene; what the mask does not show has neither point nor box (both NaN)."""
    from scipy import ndimage  # slow to import

    count = len(points)
    visible = np.asarray(points, np.float32).reshape(count, 2).copy()
    boxes: Float32Array = np.full((count, 4), np.nan, np.float32)
    for number, place in enumerate(ndimage.find_objects(mask, max_label=count) if count else []):
        if place is None:
            visible[number] = np.nan
        else:
            rows, columns = place
            # The edges of a pixel lie half a pixel from its centre.
            boxes[number] = (columns.start - 0.5, rows.start - 0.5, columns.stop - 0.5, rows.stop - 0.5)
    return Truth(points=visible, boxes=boxes, mask=mask, attributes=attributes)


def _read_mask(path: Path) -> UInt8Array:
    image_size(path)  # refuses what is missing, damaged or far too large before it is decoded
    try:
        with Image.open(path) as picture:
            mask = np.array(picture)
    except Exception as error:  # Pillow raises many kinds on damaged data
        raise DataError(str(path), f"cannot be read ({error})", "replace it with an intact copy") from error
    if mask.ndim != 2 or mask.dtype.kind not in "biu" or int(mask.max()) > 255:
        raise DataError(str(path), "is not a grey or palette image of object numbers", "use one channel of 8 bits")
    return mask.astype(np.uint8)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror})", "give every image its own file") from error
    except (ValueError, RecursionError) as error:
        raise DataError(str(path), f"is not JSON ({error})", "replace it with an intact copy") from error


def _pixel(thing: dict[str, Any], number: int, path: Path) -> tuple[float, float]:
    found = thing.get("pixel")
    if isinstance(found, list) and len(found) >= 2:
        x, y = found[:2]
        if all(isinstance(value, int | float) and math.isfinite(value) for value in (x, y)):
            return float(x), float(y)
    raise DataError(str(path), f"object {number} has no pixel [x, y, depth]", "give the place of its centre")


def _code(thing: dict[str, Any], name: str, path: Path) -> int:
    value = thing.get(name)
    if value not in ATTRIBUTE_NAMES[name]:
        raise DataError(str(path), f"an object has the {name} {value!r}", nearest(str(value), ATTRIBUTE_NAMES[name]))
    return ATTRIBUTE_NAMES[name].index(str(value))
