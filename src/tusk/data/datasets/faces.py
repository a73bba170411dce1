"""Drawn faces with exact landmarks: what a folder of portraits is like, without anybody's portrait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from tusk.data.dataset import Dataset, Float32Array, Truth, UInt8Array
from tusk.data.registry import Entry, Request, register
from tusk.data.synthetic.faces.backdrop import draw_backdrop
from tusk.data.synthetic.faces.body import Place
from tusk.data.synthetic.faces.drawing import Measured, draw_person, measure
from tusk.data.synthetic.faces.person import Person, sample_person
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.data.synthetic.faces.trace import Light
from tusk.errors import UsageError, nearest

SPLITS = ("train", "test")
SUPERSAMPLING = 2
LEAST_AREA, MOST_AREA = 0.31, 0.62  # of a single face's box in the image; the paper keeps faces of at least 0.3
HAIR_ROOM = (0.22, 0.24, 0.22, 0.06)  # left, top, right, bottom: kept free around a face, in sizes of its box


@dataclass(frozen=True)
class PlacedPerson:
    """A person, and where in the image; boxes and points are in pixels of the image."""

    person: Person
    place: Place
    points: Float32Array  # (5, 2)
    box: Float32Array  # (4,)


class Faces:
    """`count` images of `faces` people each (or of a number in a range), the same for the same seed and split."""

    def __init__(
        self,
        split: str = "train",
        count: int = 50_000,
        seed: int = 0,
        size: int = 80,
        faces: int | tuple[int, int] = 1,
    ) -> None:
        if split not in SPLITS:
            raise UsageError(f"split '{split}'", "is not a split of the drawn faces", nearest(split, SPLITS))
        fewest, most = (faces, faces) if isinstance(faces, int) else faces
        if not 1 <= fewest <= most <= 16:
            raise UsageError(
                f"faces {faces}", "is not a number of faces from 1 to 16", "give a number, or least and most"
            )
        if size < 16:
            raise UsageError(f"size {size}", "is too small for a face", "give at least 16 pixels")
        if count < 0 or seed < 0:
            raise UsageError(f"count {count}, seed {seed}", "must not be negative", "give 0 or more")
        self._split, self._count, self._seed, self._size = SPLITS.index(split), count, seed, size
        self._fewest, self._most = fewest, most

    @property
    def name(self) -> str:
        return "faces"

    @property
    def class_names(self) -> tuple[str, ...]:
        return LANDMARKS

    def __len__(self) -> int:
        return self._count

    def _generator(self, index: int, purpose: int) -> np.random.Generator:
        if not 0 <= index < self._count:
            raise IndexError(f"image {index} of {self._count}")
        return np.random.default_rng((self._seed, self._split, index, purpose))

    def people(self, index: int) -> list[PlacedPerson]:
        """Who is in image `index`, from left to right."""
        rng = self._generator(index, 0)
        number = int(rng.integers(self._fewest, self._most + 1))
        people = [sample_person(rng) for _ in range(number)]
        placed = _place(people, [measure(person) for person in people], self._size, rng)
        return sorted(placed, key=lambda one: float(one.box[0]))

    def image(self, index: int) -> UInt8Array:
        people = self.people(index)
        rng = self._generator(index, 1)
        light = _light(rng)
        picture = draw_backdrop(rng, self._size * SUPERSAMPLING)
        # Whoever's chin is lower stands in front: then no shoulder ever covers a face.
        for one in sorted(people, key=lambda one: float(one.box[3])):
            at, scale = one.place, SUPERSAMPLING
            fine = Place((at.x + 0.5) * scale - 0.5, (at.y + 0.5) * scale - 0.5, at.unit * scale)
            draw_person(picture, one.person, fine, light, rng)
        return _photograph(picture, rng)

    def truth(self, index: int) -> Truth:
        people = self.people(index)
        return Truth(
            points=np.concatenate([one.points for one in people]),
            boxes=np.stack([one.box for one in people]),
            classes=np.tile(np.arange(len(LANDMARKS), dtype=np.int64), len(people)),
        )


def _light(rng: np.random.Generator) -> Light:
    right, down = rng.normal(0, 0.55), rng.normal(-0.45, 0.3)
    length = float(np.sqrt(right * right + down * down + 1))
    warmth = float(rng.normal(0, 0.04))
    ambient = float(rng.uniform(0.32, 0.62))
    strength = float(rng.uniform(0.92, 1.06)) - ambient * 0.85
    return Light(
        direction=(right / length, down / length, 1 / length),
        colour=(strength * (1 + warmth), strength, strength * (1 - warmth)),
        ambient=(ambient * (1 - warmth / 2), ambient * 0.97, ambient * (0.97 + warmth / 2)),
    )


def _place(people: list[Person], measured: list[Measured], size: int, rng: np.random.Generator) -> list[PlacedPerson]:
    """Sizes and places at random, so that every face lies within the image and none is near another."""
    alone = len(people) == 1
    # People who stand together are of about the same size in the picture.
    common = rng.uniform(0.3, 0.6) / len(people)
    shrink = 1.0
    while True:
        placed: list[PlacedPerson] = []
        for person, one in zip(people, measured, strict=True):
            left, top, right, bottom = one.box
            area = rng.uniform(LEAST_AREA, MOST_AREA) if alone else common * rng.uniform(0.75, 1.3) * shrink
            unit = float(size * np.sqrt(area / ((right - left) * (bottom - top))))
            # A long narrow head may not fit at the size that was drawn.
            unit = min(unit, (size - 1) / max(right - left, bottom - top))
            spare_x, spare_y = size - unit * (right - left), size - unit * (bottom - top)
            # Photographers centre a single face, more or less, and leave more room below than above.
            share_x, share_y = rng.beta(2.5, 2.5, 2) if alone else rng.random(2)
            x = -0.5 - unit * left + spare_x * share_x
            y = -0.5 - unit * top + spare_y * (0.1 + 0.6 * share_y if alone else 0.04 + 0.9 * share_y)
            offset = np.array([x, y], np.float32)
            box = np.array([left, top, right, bottom], np.float32) * np.float32(unit) + np.tile(offset, 2)
            points = (one.points * np.float32(unit) + offset).astype(np.float32)
            placed.append(PlacedPerson(person, Place(float(x), float(y), unit), points, box))
            if any(_near(box, other.box) for other in placed[:-1]):
                break
        else:
            return placed
        shrink *= 0.99


def _near(first: Float32Array, second: Float32Array) -> bool:
    """Whether one's hair could reach the other's face."""
    return _reaches(first, second) or _reaches(second, first)


def _reaches(first: Float32Array, second: Float32Array) -> bool:
    wide, high = first[2] - first[0], first[3] - first[1]
    left, top = first[0] - HAIR_ROOM[0] * wide, first[1] - HAIR_ROOM[1] * high
    right, bottom = first[2] + HAIR_ROOM[2] * wide, first[3] + HAIR_ROOM[3] * high
    return bool(left < second[2] and second[0] < right and top < second[3] and second[1] < bottom)


def _photograph(picture: Float32Array, rng: np.random.Generator) -> UInt8Array:
    """From the fine picture to the image: lens blur, exposure, now and then black and white, noise."""
    fine = Image.fromarray(np.clip(picture + 0.5, 0, 255).astype(np.uint8))
    blurred = fine.reduce(SUPERSAMPLING).filter(ImageFilter.GaussianBlur(float(rng.uniform(0.2, 0.6))))
    image = np.asarray(blurred, dtype=np.float32)
    if rng.random() < 0.05:
        grey = image[:, :, 0] * 0.3 + image[:, :, 1] * 0.59 + image[:, :, 2] * 0.11
        image = np.repeat(grey[:, :, None], 3, axis=2)
    gain, lift = rng.uniform(0.88, 1.12), rng.uniform(-8, 10)
    grain = rng.standard_normal(image.shape, dtype=np.float32) * np.float32(rng.uniform(0.4, 3.2))
    return np.clip(image * np.float32(gain) + np.float32(lift) + grain + 0.5, 0, 255).astype(np.uint8)


def _open(request: Request) -> Dataset:
    return Faces(split=request.half, count=request.count or 50_000, seed=request.seed, size=request.size or 80)


register(Entry("faces", "drawn faces, 5 landmarks", "made", True, _open))
