"""CLEVR scenes made on the spot: images like CLEVR's with exact masks, centres and attributes.

Image i follows from the seed, the split and i alone; how far that holds between machines: see `synthetic.clevr.render`.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from tusk.data.dataset import Attribute, Truth, UInt8Array
from tusk.data.datasets.clevr_scenes import scene_truth
from tusk.data.synthetic.clevr.render import BASE_SIZE, centres, draw, draw_mask
from tusk.data.synthetic.clevr.scene import COLORS, MATERIALS, MOST_THINGS, SHAPES, SIZES, Scene, draw_scene
from tusk.errors import UsageError, nearest

Split = Literal["train", "test"]
COUNTS = {"train": 70_000, "test": 10_000}  # as many as CLEVR6 has in papers
LEAST_VISIBLE = 45  # pixels of every thing that must be visible, of an image of 128 x 128
SMALLEST, LARGEST = 16, 1024


class ClevrMade:
    """Scenes of `min_objects` to `max_objects` things, every number equally likely; a `Dataset`.

    3 to 6 things are CLEVR6; 7 to 10 are what CLEVR10 has beyond it.
    """

    name = "clevr-made"
    class_names: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        split: Split = "train",
        count: int | None = None,
        seed: int = 0,
        size: int = BASE_SIZE,
        max_objects: int = 6,
        min_objects: int = 3,
    ) -> None:
        if split not in get_args(Split):
            raise UsageError(f"split '{split}'", "is not known", nearest(split, get_args(Split)))
        if count is not None and count < 1:
            raise UsageError(f"count {count}", "is less than one", "ask for at least one image")
        if not 0 <= seed < 2**32:
            raise UsageError(f"seed {seed}", "is out of range", f"choose one from 0 to {2**32 - 1}")
        if not 1 <= min_objects <= max_objects <= MOST_THINGS:
            fix = f"choose 1 <= min_objects <= max_objects <= {MOST_THINGS}"
            raise UsageError(f"{min_objects} to {max_objects} objects", "cannot be placed in a scene", fix)
        if not SMALLEST <= size <= LARGEST:
            raise UsageError(f"size {size}", "cannot be drawn", f"choose {SMALLEST} to {LARGEST} pixels")
        self.split, self.seed, self.size = split, seed, size
        self.min_objects, self.max_objects = min_objects, max_objects
        self._count = COUNTS[split] if count is None else count

    def __len__(self) -> int:
        return self._count

    def image(self, index: int) -> UInt8Array:
        """(size, size, 3), uint8, RGB."""
        return draw(self.scene(index), self.size)

    def truth(self, index: int) -> Truth:
        """Projected centres, the mask, boxes of the visible parts, and CLEVR's four attributes."""
        scene = self.scene(index)
        columns = {
            "shape": ([thing.shape for thing in scene.things], SHAPES),
            "color": ([thing.color for thing in scene.things], COLORS),
            "size": ([thing.size for thing in scene.things], SIZES),
            "material": ([thing.material for thing in scene.things], MATERIALS),
        }
        attributes = {key: Attribute(np.array(values, np.int64), names) for key, (values, names) in columns.items()}
        return scene_truth(centres(scene, self.size), draw_mask(scene, self.size), attributes)

    def scene(self, index: int) -> Scene:
        """The first scene of this index's own random numbers in which every thing is visible enough."""
        if not 0 <= index < self._count:
            raise IndexError(f"image {index} of {self._count}")
        generator = np.random.default_rng((self.seed, get_args(Split).index(self.split), index))
        things = int(generator.integers(self.min_objects, self.max_objects + 1))
        while True:
            scene = draw_scene(generator, things)
            # Judged at the base size always, so that a scene does not depend on the size that it is drawn at.
            visible = np.bincount(draw_mask(scene, BASE_SIZE).ravel(), minlength=things + 1)[1:]
            if visible.min() >= LEAST_VISIBLE:
                return scene
