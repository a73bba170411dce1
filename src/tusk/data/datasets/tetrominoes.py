"""Tetrominoes: three pieces of four blocks on black, 35 x 35 pixels; read from the original file, or made.

The original (`tetrominoes_train.tfrecords` of the multi-object datasets) and the pieces made here look the same:
19 shapes with rotations, six colours, any pixel offset, no overlap.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tusk.data.convert import Conversion, convert_once, packed_path, read_examples, split_rows
from tusk.data.dataset import Attribute, Dataset, Float32Array, Int64Array, Truth, UInt8Array
from tusk.data.packed import PackedDataset, Progress
from tusk.data.registry import Entry, Request, register
from tusk.errors import DataError, UsageError, nearest

SIZE = 35
PIECES = 3
BLOCK = 5
# The light on one block, by rows: a bright upper edge, a plain middle, a dark lower edge.
PATTERN: UInt8Array = np.array(
    [[191, 255, 255, 255, 223], *[[127, 159, 159, 159, 191]] * 3, [95, 63, 63, 63, 127]], np.uint8
)

# Every piece in its first position; '#' is a block.
_FIRST = {
    "I": ("####",),
    "O": ("##", "##"),
    "T": ("###", ".#."),
    "S": (".##", "##."),
    "Z": ("##.", ".##"),
    "J": ("###", "..#"),
    "L": ("###", "#.."),
}
_RGB = {
    "red": (1, 0, 0),
    "green": (0, 1, 0),
    "blue": (0, 0, 1),
    "cyan": (0, 1, 1),
    "magenta": (1, 0, 1),
    "yellow": (1, 1, 0),
}
COLORS = tuple(_RGB)
SPLITS = {"train": 50_000, "test": 10_000}
# The paper speaks of 80,000 images; the file may hold more, which it did not use.
_ORIGINAL_COUNT = 80_000


def _rotations() -> dict[str, npt.NDArray[np.bool_]]:
    """Every shape with its quarter turns, without those that look the same: 19 in all."""
    shapes: dict[str, npt.NDArray[np.bool_]] = {}
    for letter, rows in _FIRST.items():
        grid = np.array([[cell == "#" for cell in row] for row in rows])
        turns = [np.rot90(grid, -quarter) for quarter in range(4)]
        for quarter, turned in enumerate(turns):
            if not any(np.array_equal(turned, earlier) for earlier in turns[:quarter]):
                shapes[f"{letter}{90 * quarter}"] = turned
    return shapes


_GRIDS = _rotations()
SHAPES = tuple(_GRIDS)


@dataclass(frozen=True)
class _Stamps:
    """Everything about the pieces that does not depend on where they lie."""

    sizes: Int64Array  # (19, 2) height, width in pixels
    centres: Float32Array  # (19, 2) x, y of the mean of the pixels, from the top-left pixel
    covers: list[npt.NDArray[np.bool_]]  # 19 of (height, width)
    images: list[list[UInt8Array]]  # 19 x 6 of (height, width, 3)
    collides: npt.NDArray[np.bool_]  # (19, 19, 69, 69): shape a, shape b, offset of b from a in y and x, plus 34


@cache
def _stamps() -> _Stamps:
    covers = [np.kron(grid, np.ones((BLOCK, BLOCK), bool)).astype(bool) for grid in _GRIDS.values()]
    lights = [np.kron(grid, PATTERN).astype(np.uint8) for grid in _GRIDS.values()]
    images = [[light[:, :, None] * np.array(rgb, np.uint8) for rgb in _RGB.values()] for light in lights]
    centres = [np.argwhere(cover).mean(axis=0)[::-1] for cover in covers]
    blocks = [np.argwhere(grid) * BLOCK for grid in _GRIDS.values()]
    offsets = np.arange(-SIZE + 1, SIZE)
    collides = np.zeros((len(SHAPES), len(SHAPES), len(offsets), len(offsets)), bool)
    for first, own in enumerate(blocks):
        for second, others in enumerate(blocks):
            for y, x in (others[None] - own[:, None]).reshape(-1, 2):
                collides[first, second] |= np.outer(abs(offsets + y) < BLOCK, abs(offsets + x) < BLOCK)
    sizes = np.array([cover.shape for cover in covers], np.int64)
    return _Stamps(sizes, np.array(centres, np.float32), covers, images, collides)


@dataclass(frozen=True)
class _Layout:
    shapes: Int64Array  # (3,)
    colors: Int64Array  # (3,)
    corners: Int64Array  # (3, 2) y, x of the top-left pixel


class Tetrominoes:
    """Made Tetrominoes. Image `i` depends on the seed, the split and `i` alone."""

    name = "tetrominoes"
    class_names: tuple[str, ...] = ()

    def __init__(self, split: str = "train", count: int | None = None, seed: int = 0) -> None:
        _check_split(split)
        if seed < 0 or (count is not None and count < 1):
            raise UsageError("tetrominoes", f"count {count} with seed {seed} cannot be made", "give positive numbers")
        self.split, self.seed = split, seed
        self._count = SPLITS[split] if count is None else count

    def __len__(self) -> int:
        return self._count

    def image(self, index: int) -> UInt8Array:
        canvas = np.zeros((SIZE, SIZE, 3), np.uint8)
        self._draw(index, canvas)
        return canvas

    def images(self, indices: Iterable[int]) -> UInt8Array:
        """(N, 35, 35, 3): many images at once."""
        wanted = list(indices)
        canvases = np.zeros((len(wanted), SIZE, SIZE, 3), np.uint8)
        for canvas, index in zip(canvases, wanted, strict=True):
            self._draw(index, canvas)
        return canvases

    def truth(self, index: int) -> Truth:
        layout = self._layout(index)
        stamps = _stamps()
        mask = np.zeros((SIZE, SIZE), np.uint8)
        for piece, (shape, (y, x)) in enumerate(zip(layout.shapes, layout.corners, strict=True), start=1):
            height, width = stamps.sizes[shape]
            mask[y : y + height, x : x + width][stamps.covers[shape]] = piece
        corners = layout.corners[:, ::-1].astype(np.float32)
        # The edges of a pixel lie half a pixel from its centre.
        boxes = np.concatenate([corners, corners + stamps.sizes[layout.shapes, ::-1]], axis=1) - np.float32(0.5)
        return Truth(
            points=corners + stamps.centres[layout.shapes],
            boxes=boxes.astype(np.float32),
            mask=mask,
            attributes={"shape": Attribute(layout.shapes, SHAPES), "color": Attribute(layout.colors, COLORS)},
        )

    def _draw(self, index: int, canvas: UInt8Array) -> None:
        layout = self._layout(index)
        stamps = _stamps()
        for shape, color, (y, x) in zip(layout.shapes, layout.colors, layout.corners, strict=True):
            stamp = stamps.images[shape][color]
            window = canvas[y : y + stamp.shape[0], x : x + stamp.shape[1]]
            np.maximum(window, stamp, out=window)

    def _layout(self, index: int) -> _Layout:
        place = operator.index(index)
        if not -self._count <= place < self._count:
            raise IndexError(f"there are {self._count:,} images, not one at {index}")
        stamps = _stamps()
        # The generator's raw numbers are the same in every version of numpy, which its drawing methods do not promise.
        source = np.random.PCG64((self.seed, list(SPLITS).index(self.split), place % self._count))
        shapes = _below(source, np.full(PIECES, len(SHAPES)))
        colors = _below(source, np.full(PIECES, len(COLORS)))
        free = SIZE - stamps.sizes[shapes] + 1
        # Shapes are drawn first and only the places are drawn again, or else the compact shapes would be more frequent.
        while True:
            corners = _below(source, np.broadcast_to(free, (16, PIECES, 2)))
            clear = np.ones(len(corners), bool)
            for first, second in ((0, 1), (0, 2), (1, 2)):
                y, x = (corners[:, second] - corners[:, first] + SIZE - 1).T
                clear &= ~stamps.collides[shapes[first], shapes[second], y, x]
            if clear.any():
                return _Layout(shapes, colors, corners[int(clear.argmax())])


def _below(source: np.random.PCG64, limits: npt.NDArray[np.int64]) -> Int64Array:
    """One number in 0..limit-1 for every limit, by exact integer arithmetic."""
    raw = source.random_raw(limits.size).reshape(limits.shape)
    scaled = (raw >> np.uint64(32)) * limits.astype(np.uint64) >> np.uint64(32)
    return scaled.astype(np.int64)


def read_tetrominoes(
    path: Path | str,
    split: str = "train",
    *,
    cache: Path | str | None = None,
    limit: int | None = _ORIGINAL_COUNT,
    progress: Progress | None = None,
) -> PackedDataset:
    """The original file's first 50,000 images (train) or last 10,000 (test), of the first `limit` that it holds.

    It is converted once to a packed file, in the folder `cache` or beside the original, which stays as it is.
    """
    _check_split(split)
    path = Path(path)
    conversion = Conversion(path, packed_path(path, cache), "tetrominoes", "tetrominoes converter 1", f"limit={limit}")
    packed = convert_once(conversion, _original(path, limit), progress)
    train, test = split_rows(len(packed), SPLITS["train"], SPLITS["test"])
    rows = train if split == "train" else test
    if not rows:
        raise DataError(str(path), f"holds {len(packed)} images, too few for the split '{split}'", "use the whole file")
    return packed.subset(rows)


def _original(path: Path, limit: int | None) -> Iterator[tuple[UInt8Array, Truth]]:
    for example, where in read_examples(path, limit):
        image = example.one_byte_each("image", (SIZE, SIZE, 3))
        masks = example.one_byte_each("mask", (PIECES + 1, SIZE, SIZE, 1))[..., 0] > 127
        visible = example.floats("visibility", (PIECES + 1,)) > 0
        yield image, _truth_from_masks(image, masks[1:][visible[1:]], where)


def _truth_from_masks(image: UInt8Array, masks: npt.NDArray[np.bool_], where: str) -> Truth:
    """The truth as the pixels show it: the file's own codes of shapes and places are documented nowhere."""
    mask = np.zeros((SIZE, SIZE), np.uint8)
    points, boxes, shapes, colors = [], [], [], []
    for piece, cover in enumerate(masks, start=1):
        pixels = np.argwhere(cover)
        if not len(pixels):
            raise DataError(where, f"the mask of piece {piece} is empty", "check that it is the Tetrominoes file")
        mask[cover] = piece
        (top, left), (bottom, right) = pixels.min(axis=0), pixels.max(axis=0)
        points.append(pixels.mean(axis=0)[::-1])
        boxes.append((left - 0.5, top - 0.5, right + 0.5, bottom + 0.5))
        shapes.append(_shape_of(cover[top : bottom + 1, left : right + 1], piece, where))
        lit = tuple(image[cover].any(axis=0).astype(int))
        if lit not in _RGB.values():
            raise DataError(
                where, f"piece {piece} has none of the six colours", "check that it is the Tetrominoes file"
            )
        colors.append(list(_RGB.values()).index(lit))
    return Truth(
        points=np.array(points, np.float32).reshape(-1, 2),
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        mask=mask,
        attributes={
            "shape": Attribute(np.array(shapes, np.int64), SHAPES),
            "color": Attribute(np.array(colors, np.int64), COLORS),
        },
    )


def _shape_of(cover: npt.NDArray[np.bool_], piece: int, where: str) -> int:
    for number, known in enumerate(_stamps().covers):
        if np.array_equal(cover, known):
            return number
    raise DataError(where, f"the mask of piece {piece} is no tetromino", "check that it is the Tetrominoes file")


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise UsageError("split", f"there is no '{split}'", nearest(split, SPLITS))


def _open(request: Request) -> Dataset:
    if request.source is None:
        return Tetrominoes(split=request.half, count=request.count, seed=request.seed)
    return read_tetrominoes(Path(request.source), request.half)


register(Entry("tetrominoes", "three coloured pieces on black", "made, or the original TFRecord file", True, _open))
