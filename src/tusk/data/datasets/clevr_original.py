"""CLEVR with masks: the original `clevr_with_masks_train.tfrecords` of the multi-object datasets, 100,000 scenes.

The scenes are cropped to the middle 192 x 192 pixels, as the object-discovery papers do, and resized.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tusk.data.convert import Conversion, convert_once, packed_path, read_examples, split_rows
from tusk.data.dataset import Attribute, Int64Array, Truth, UInt8Array
from tusk.data.datasets.clevr_scenes import scene_truth
from tusk.data.formats.tf_example import Example
from tusk.data.framing import Framing, moved_truth
from tusk.data.images import Picture
from tusk.data.packed import PackedDataset, Progress
from tusk.errors import DataError, UsageError, nearest

SPLITS = ("train", "test", "clevr10")
_HEIGHT, _WIDTH, _ENTITIES = 240, 320, 11  # entity 0 is the background
_TOP, _LEFT, _CROP = 29, 64, 192  # rows 29..221, columns 64..256
_TRAIN, _TEST = 60_000, 10_000
_FEW = 6  # objects in a scene of CLEVR6, at most
# How many values each attribute has. The file codes them from 1 and says nowhere which is which, so they get numbers
# for names; measures that compare types with attributes need no more.
_VALUES = {"shape": 3, "color": 8, "size": 2, "material": 2}


def read_clevr(
    path: Path | str,
    split: str = "train",
    *,
    size: int = 128,
    cache: Path | str | None = None,
    progress: Progress | None = None,
) -> PackedDataset:
    """One split of the original file, as images of size x size pixels.

    train, test: of the first 70,000 scenes with at most six objects (CLEVR6) the first 60,000 and the last 10,000.
    clevr10: the last 10,000 scenes with any number of objects (up to ten) that lie behind the last training scene.

    The file is converted once to a packed one, in the folder `cache` or beside the original, which stays as it is.
    """
    if split not in SPLITS:
        raise UsageError("split", f"there is no '{split}'", nearest(split, SPLITS))
    if size < 1:
        raise UsageError("size", f"{size} is no size of an image", "give a positive number of pixels")
    path = Path(path)
    destination = packed_path(path, cache, f"-{size}")
    conversion = Conversion(path, destination, "clevr", "clevr converter 2", f"size={size}")
    packed = convert_once(conversion, _scenes(path, size), progress)
    rows = rows_of_split(packed.counts(), split)
    if not len(rows):
        raise DataError(str(path), f"holds {len(packed)} scenes, too few for the split '{split}'", "use the whole file")
    return packed.subset(rows.tolist())


def rows_of_split(counts: Int64Array, split: str) -> Int64Array:
    """Which scenes belong to a split, given how many objects each has."""
    few = np.flatnonzero(counts <= _FEW)[: _TRAIN + _TEST]
    train, test = split_rows(len(few), _TRAIN, _TEST)
    if split == "train":
        return few[list(train)]
    if split == "test":
        return few[list(test)]
    first = int(few[train[-1]]) + 1 if train else 0
    return np.arange(max(first, len(counts) - _TEST), len(counts))


def _scenes(path: Path, size: int) -> Iterator[tuple[UInt8Array, Truth]]:
    crop = np.s_[_TOP : _TOP + _CROP, _LEFT : _LEFT + _CROP]
    framing = Framing(size)
    (placement,) = framing.places(_CROP, _CROP, np.random.default_rng(0))
    for example, where in read_examples(path):
        image = example.one_byte_each("image", (_HEIGHT, _WIDTH, 3))[crop]
        entities = example.one_byte_each("mask", (_ENTITIES, _HEIGHT, _WIDTH, 1))[:, *crop, 0]
        there = np.flatnonzero(example.floats("visibility", (_ENTITIES,))[1:] > 0) + 1
        mask = np.zeros((_CROP, _CROP), np.uint8)
        for number, entity in enumerate(there, start=1):
            mask[entities[entity] > 127] = number
        # CLEVR counts pixels from the image's corner, not from the centre of the first pixel.
        pixels = example.floats("pixel_coords", (_ENTITIES, 3))[there, :2]
        points = pixels - np.array([_LEFT, _TOP]) - 0.5
        attributes = {name: _attribute(example, name, there, where) for name in _VALUES}
        (scaled,) = framing.render(Picture(np.ascontiguousarray(image), _CROP, _CROP), [placement])
        yield scaled, moved_truth(scene_truth(points, mask, attributes), placement, _CROP, _CROP, size)


def _attribute(example: Example, name: str, there: npt.NDArray[np.intp], where: str) -> Attribute:
    codes = example.one_byte_each(name, (_ENTITIES,))[there].astype(np.int64)
    if len(codes) and not 1 <= codes.min() <= codes.max() <= _VALUES[name]:
        why = f"an object has a {name} coded {codes.tolist()} where 1 to {_VALUES[name]} belong"
        raise DataError(where, why, "check that it is the CLEVR file with masks")
    return Attribute(codes - 1, tuple(f"{name} {code}" for code in range(1, _VALUES[name] + 1)))
