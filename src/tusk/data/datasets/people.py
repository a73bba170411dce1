"""People that need no download: mannequins of shaded capsules in natural poses on white, with Human3.6M's 32 joints.

Every person is drawn anew from (seed, split, index): stature, clothes, activity, heading, camera and light.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tusk.data.dataset import Dataset, Int64Array, Truth, UInt8Array
from tusk.data.datasets.h36m import JOINT_NAMES
from tusk.data.registry import Entry, Request, register
from tusk.data.synthetic.people.activities import ACTIVITIES, act
from tusk.data.synthetic.people.appearance import Appearance, draw_appearance, draw_bones
from tusk.data.synthetic.people.body import build, lowest
from tusk.data.synthetic.people.pose import Array, Bones, Pose, forward, spread, turn_x, turn_y, turn_z
from tusk.data.synthetic.people.render import Camera, Light, Rendering, RoundCone, Shape, bounds, render
from tusk.errors import UsageError, nearest

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Person:
    """Who is in an image, what they do and how they are seen."""

    activity: str
    heading: float  # degrees, 0 facing the camera, 90 turned to the right of the image
    bones: Bones
    appearance: Appearance
    pose: Pose
    joints: Array  # (32, 3), camera coordinates
    shapes: list[Shape]  # camera coordinates
    camera: Camera
    light: Light


def draw_person(rng: np.random.Generator, size: int) -> Person:
    heading = float(rng.uniform(-180, 180))
    activity = ACTIVITIES[int(rng.integers(len(ACTIVITIES)))]
    bones, appearance = draw_bones(rng), draw_appearance(rng)
    pose = act(activity, rng, bones, appearance.girth)
    skeleton = forward(pose, bones)
    shapes = build(skeleton, appearance, bones)
    # From body to camera: turned, then seen from a camera that looks at the middle of the body from beyond the ground.
    distance, camera_height = float(rng.uniform(3.6, 5.6)), float(rng.uniform(0.9, 2.0))
    ground, crown = lowest(shapes), float(skeleton.joints[:, 1].max())
    eye = np.array([0.0, ground + camera_height, distance])
    down = math.degrees(math.atan2(eye[1] - 0.5 * (ground + crown), distance))
    world_to_camera = turn_z(spread(rng, 0, 1.5)) @ turn_x(180 + down)
    turn, offset = world_to_camera @ turn_y(heading), world_to_camera @ -eye
    shapes = [_moved(shape, turn, offset) for shape in shapes]
    return Person(
        activity=activity.name,
        heading=heading,
        bones=bones,
        appearance=appearance,
        pose=pose,
        joints=_tidy(skeleton.joints @ turn.T + offset),
        shapes=shapes,
        camera=_frame(rng, shapes, size),
        light=_draw_light(rng, world_to_camera),
    )


def _tidy(values: Array) -> Array:
    """To the micrometre: what differs between machines in the last digit of a sine is gone before pixels are made."""
    return np.round(values, 6)


def _moved(shape: Shape, turn: Array, offset: Array) -> Shape:
    if isinstance(shape, RoundCone):
        start, end = _tidy(turn @ shape.start + offset), _tidy(turn @ shape.end + offset)
        return replace(shape, start=start, end=end, thin=_tidy(turn @ shape.thin))
    centre, axes = _tidy(turn @ shape.centre + offset), _tidy(turn @ shape.axes)
    return replace(shape, centre=centre, axes=axes, radii=_tidy(shape.radii))


def _frame(rng: np.random.Generator, shapes: list[Shape], size: int) -> Camera:
    """A square crop around the person, who fills most of it."""
    boxes = np.array([bounds(shape) for shape in shapes])
    left, top, right, bottom = boxes[:, 0].min(), boxes[:, 1].min(), boxes[:, 2].max(), boxes[:, 3].max()
    side = max(right - left, bottom - top) / float(rng.uniform(0.86, 0.95))
    focal = round(float(size / side), 6)
    # Somewhere within the room that is left, but near the middle.
    shift_x, shift_y = rng.uniform(-0.4, 0.4, 2) * (side - np.array([right - left, bottom - top]))
    shift_x = min(max(shift_x, -0.06 * side), 0.06 * side)
    x, y = 0.5 * (left + right) + shift_x, 0.5 * (top + bottom) + shift_y
    return Camera(
        focal, round(0.5 * (size - 1) - focal * float(x), 6), round(0.5 * (size - 1) - focal * float(y), 6), size
    )


def _draw_light(rng: np.random.Generator, world_to_camera: Array) -> Light:
    """A lamp somewhere on the camera's side, above, and light from the sky."""
    around, above = math.radians(float(rng.uniform(-75, 75))), math.radians(float(rng.uniform(15, 65)))
    level = math.cos(above)
    towards = world_to_camera @ [math.sin(around) * level, math.sin(above), math.cos(around) * level]
    ambient = float(rng.uniform(0.45, 0.65))
    up = world_to_camera @ [0.0, 1.0, 0.0]
    return Light(_tidy(towards), _tidy(up), strength=float(rng.uniform(0.92, 1.04)) - 0.8 * ambient, ambient=ambient)


class People:
    """`count` people, one per image; the same seed and split give the same bytes on every machine, in any order."""

    name = "people"
    class_names = JOINT_NAMES

    def __init__(self, split: str = "train", count: int = 50_000, seed: int = 0, size: int = 112) -> None:
        if split not in SPLITS:
            raise UsageError(f"split '{split}'", "is not part of people", nearest(split, SPLITS))
        for setting, value, least in (("count", count, 1), ("seed", seed, 0), ("size", size, 16)):
            if value < least:
                raise UsageError(f"{setting} {value}", "is too small", f"give at least {least}")
        self.split, self.seed, self.size, self._count = split, seed, size, count
        self._last: tuple[int, Rendering] | None = None  # an image and its truth are mostly asked for together

    def __len__(self) -> int:
        return self._count

    def person(self, index: int) -> Person:
        if not 0 <= index < self._count:
            raise IndexError(f"person {index} of {self._count}")
        rng = np.random.default_rng((self.seed, SPLITS.index(self.split), index))
        return draw_person(rng, self.size)

    def image(self, index: int) -> UInt8Array:
        """(size, size, 3): the person on white."""
        return self._rendering(index, None).image.copy()

    def truth(self, index: int) -> Truth:
        """The 32 joints, hidden ones as well, sides as the person has them; mask 1 on the person."""
        person = self.person(index)
        points = person.camera.project(person.joints).astype(np.float32)
        classes: Int64Array = np.arange(len(JOINT_NAMES), dtype=np.int64)
        return Truth(points=points, classes=classes, mask=self._rendering(index, person).mask.copy())

    def _rendering(self, index: int, person: Person | None) -> Rendering:
        if self._last is None or self._last[0] != index:
            person = person or self.person(index)
            self._last = index, render(person.shapes, person.camera, person.light)
        return self._last[1]


def _open(request: Request) -> Dataset:
    return People(split=request.half, count=request.count or 50_000, seed=request.seed, size=request.size or 112)


register(Entry("people", "posed 3D figures, 32 joints", "made", True, _open))
