"""A human skeleton: bones, joint angles within human limits, where 32 joints then are, and limbs solved backwards.

Body coordinates: x to the person's left, y up, z where they face; metres, the hips at the origin. Angles in degrees,
named as in anatomy; zero is standing at attention. `side` is +1 for the left and -1 for the right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Generator = np.random.Generator
LEFT, RIGHT = 1, -1
# Where each side's leg and arm begin in the H36M order of joints.
LEG_START = {LEFT: 6, RIGHT: 1}
ARM_START = {LEFT: 16, RIGHT: 24}


def angle(low: float, high: float) -> Any:
    """A joint angle that is 0 at rest and stays within these limits."""
    return field(default=0.0, metadata={"low": low, "high": high})


@dataclass(frozen=True)
class Trunk:
    """`lean`, `tilt`: the hips against the ground, forwards and to the right. Twists are to the left."""

    lean: float = angle(-30, 75)
    tilt: float = angle(-12, 12)
    spine_bend: float = angle(-15, 45)
    spine_side: float = angle(-20, 20)
    spine_twist: float = angle(-20, 20)
    chest_bend: float = angle(-15, 30)
    chest_side: float = angle(-15, 15)
    chest_twist: float = angle(-25, 25)
    neck_bend: float = angle(-35, 40)
    neck_side: float = angle(-25, 25)
    neck_twist: float = angle(-55, 55)
    nod: float = angle(-20, 25)


@dataclass(frozen=True)
class Leg:
    """`rotation`, `foot_turn` are outwards; `knee` bends backwards only; `ankle` lifts the foot, `toes` the toes."""

    flexion: float = angle(-30, 130)
    abduction: float = angle(-25, 50)
    rotation: float = angle(-40, 50)
    knee: float = angle(0, 150)
    ankle: float = angle(-50, 30)
    foot_roll: float = angle(-25, 25)
    foot_turn: float = angle(-25, 25)
    toes: float = angle(-10, 60)


@dataclass(frozen=True)
class Arm:
    """`rotation` outwards; `elbow` bends forwards only; `pronation` turns the thumb inwards."""

    raised: float = angle(-10, 30)
    flexion: float = angle(-55, 178)
    abduction: float = angle(-60, 90)
    rotation: float = angle(-95, 95)
    elbow: float = angle(0, 155)
    pronation: float = angle(-85, 85)
    wrist: float = angle(-60, 60)


@dataclass(frozen=True)
class Pose:
    trunk: Trunk = field(default_factory=Trunk)
    left_leg: Leg = field(default_factory=Leg)
    right_leg: Leg = field(default_factory=Leg)
    left_arm: Arm = field(default_factory=Arm)
    right_arm: Arm = field(default_factory=Arm)


Part = TypeVar("Part", Trunk, Leg, Arm)


def clamped(part: Part) -> Part:
    """The same angles, each brought within its limits."""
    limits = {f.name: (f.metadata["low"], f.metadata["high"]) for f in fields(part)}
    within = {name: min(max(getattr(part, name), low), high) for name, (low, high) in limits.items()}
    return replace(part, **within)


@dataclass(frozen=True)
class Bones:
    """Lengths in metres; widths are from the middle of the body. The defaults are those of somebody 1.74 m tall."""

    thigh: float = 0.435
    shank: float = 0.430
    ankle: float = 0.085  # height above the sole
    foot: float = 0.140  # ankle to ball, level
    toes: float = 0.070
    sole: float = 0.030  # thickness under the ball
    hip_width: float = 0.092
    spine: float = 0.230
    chest: float = 0.265
    neck: float = 0.125
    head: float = 0.125
    shoulder_width: float = 0.165
    upper_arm: float = 0.285
    forearm: float = 0.252
    hand: float = 0.105


@dataclass(frozen=True)
class Skeleton:
    """Where a pose puts the joints, and the orientation (columns: left, up, front) of what hangs on them."""

    joints: Array  # (32, 3)
    pelvis: Array  # (3, 3), as all that follow
    waist: Array
    chest: Array
    head: Array
    hands: dict[int, Array]  # by side
    feet: dict[int, Array]


def spread(rng: Generator, mean: float, deviation: float) -> float:
    """Normally distributed, but never further than two deviations away: people vary, freaks are not wanted."""
    return mean + deviation * min(max(float(rng.standard_normal()), -2.0), 2.0)


def turn_x(degrees: float) -> Array:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def turn_y(degrees: float) -> Array:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def turn_z(degrees: float) -> Array:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def pelvis_of(trunk: Trunk) -> Array:
    return turn_z(trunk.tilt) @ turn_x(trunk.lean)


def forward(pose: Pose, bones: Bones) -> Skeleton:
    """Joint angles to joints."""
    trunk = pose.trunk
    pelvis = pelvis_of(trunk)
    waist = pelvis @ turn_y(trunk.spine_twist) @ turn_z(trunk.spine_side) @ turn_x(trunk.spine_bend)
    chest = waist @ turn_y(trunk.chest_twist) @ turn_z(trunk.chest_side) @ turn_x(trunk.chest_bend)
    neck = chest @ turn_y(trunk.neck_twist) @ turn_z(trunk.neck_side) @ turn_x(trunk.neck_bend)
    head = neck @ turn_x(trunk.nod)
    joints = np.zeros((32, 3))
    joints[12] = waist @ [0.0, bones.spine, 0.0]
    joints[13] = joints[12] + chest @ [0.0, bones.chest, 0.0]
    # The neck leans forward even in somebody who stands upright.
    joints[14] = joints[13] + neck @ [0.0, 0.97 * bones.neck, 0.24 * bones.neck]
    joints[15] = joints[14] + head @ [0.0, bones.head, 0.0]
    hands, feet = {}, {}
    for side, leg, arm in ((LEFT, pose.left_leg, pose.left_arm), (RIGHT, pose.right_leg, pose.right_arm)):
        feet[side] = _place_leg(joints, side, leg, pelvis, bones)
        hands[side] = _place_arm(joints, side, arm, chest, bones)
    return Skeleton(joints, pelvis, waist, chest, head, hands, feet)


def hip_offset(side: int, bones: Bones) -> Array:
    """Hip joint from the hips' centre, in the frame of the pelvis."""
    return np.array([side * bones.hip_width, 0.0, 0.0])


def ball_offset(bones: Bones) -> Array:
    """Ball of the foot from the ankle, in the frame of the foot."""
    return np.array([0.0, bones.sole - bones.ankle, bones.foot])


def _place_leg(joints: Array, side: int, leg: Leg, pelvis: Array, bones: Bones) -> Array:
    first = LEG_START[side]
    thigh = pelvis @ turn_x(-leg.flexion) @ turn_z(side * leg.abduction) @ turn_y(side * leg.rotation)
    shank = thigh @ turn_x(leg.knee)
    foot: Array = shank @ turn_x(-leg.ankle) @ turn_z(side * leg.foot_roll) @ turn_y(side * leg.foot_turn)
    joints[first] = pelvis @ hip_offset(side, bones)
    joints[first + 1] = joints[first] + thigh @ [0.0, -bones.thigh, 0.0]
    joints[first + 2] = joints[first + 1] + shank @ [0.0, -bones.shank, 0.0]
    joints[first + 3] = joints[first + 2] + foot @ ball_offset(bones)
    joints[first + 4] = joints[first + 3] + foot @ turn_x(-leg.toes) @ [0.0, -0.1 * bones.toes, bones.toes]
    return foot


def _place_arm(joints: Array, side: int, arm: Arm, chest: Array, bones: Bones) -> Array:
    first = ARM_START[side]
    upper = chest @ turn_x(-arm.flexion) @ turn_z(side * arm.abduction) @ turn_y(side * arm.rotation)
    lower = upper @ turn_x(-arm.elbow) @ turn_y(-side * arm.pronation)
    hand: Array = lower @ turn_z(-side * arm.wrist)
    joints[first] = joints[13]
    collar = turn_z(side * (arm.raised - 14)) @ [side * bones.shoulder_width, 0.0, 0.0]
    joints[first + 1] = joints[13] + chest @ collar
    joints[first + 2] = joints[first + 1] + upper @ [0.0, -bones.upper_arm, 0.0]
    joints[first + 3] = joints[first + 4] = joints[first + 2] + lower @ [0.0, -bones.forearm, 0.0]
    joints[first + 5] = joints[first + 3] + hand @ [0.0, -0.62 * bones.hand, 0.56 * bones.hand]
    joints[first + 6] = joints[first + 7] = joints[first + 3] + hand @ [0.0, -bones.hand, 0.0]
    return hand


def _unit(vector: Array) -> Array:
    return vector / math.sqrt(float(vector @ vector))


def _two_bones(to_target: Array, upper: float, lower: float, bulge: Array) -> tuple[Array, float]:
    """Orientation of the upper of two bones so that the lower ends at the target, the joint bulging towards `bulge`.

    Returns that orientation (up along the bone, the bulge in front) and by how much the joint bends.
    A target out of reach is approached.
    """
    distance = math.sqrt(float(to_target @ to_target))
    reach = min(max(distance, abs(upper - lower) * 1.05), 0.9995 * (upper + lower))
    ahead = to_target / distance
    across = _unit(bulge - (bulge @ ahead) * ahead)
    cosine = (upper * upper + reach * reach - lower * lower) / (2 * upper * reach)
    bone = cosine * ahead + math.sqrt(1 - cosine * cosine) * across
    up, front = -bone, _unit(across - (across @ bone) * bone)
    inner = (upper * upper + lower * lower - reach * reach) / (2 * upper * lower)
    return np.stack([np.cross(up, front), up, front], axis=1), 180 - math.degrees(math.acos(inner))


def _angles(turned: Array, side: int) -> tuple[float, float, float]:
    """Flexion, abduction, rotation such that turned = turn_x(-flexion) turn_z(side abduction) turn_y(side rotation)."""
    flexion = -math.atan2(turned[2, 1], turned[1, 1])
    abduction = -math.asin(min(max(float(turned[0, 1]), -1.0), 1.0))
    rotation = math.atan2(turned[0, 2], turned[0, 0])
    return math.degrees(flexion), side * math.degrees(abduction), side * math.degrees(rotation)


def solve_leg(pelvis: Array, hip: Array, ankle: Array, foot: Array, side: int, bones: Bones, toes: float = 0.0) -> Leg:
    """The leg that puts the ankle here and the foot in this orientation, the knee pointing as the foot does."""
    thigh, knee = _two_bones(ankle - hip, bones.thigh, bones.shank, foot @ [0.0, 0.25, 0.8] + [0.0, 0.25, 0.0])
    flexion, abduction, rotation = _angles(pelvis.T @ thigh, side)
    ankle_lift, roll, outwards = _angles((thigh @ turn_x(knee)).T @ foot, side)
    return Leg(flexion, abduction, rotation, knee, ankle_lift, roll, outwards, toes)


def solve_arm(chest: Array, shoulder: Array, wrist: Array, elbow_towards: Array, side: int, bones: Bones) -> Arm:
    """The arm that puts the wrist here with the elbow out in that direction (all but for `raised` and the hand)."""
    upper, elbow = _two_bones(wrist - shoulder, bones.upper_arm, bones.forearm, elbow_towards)
    upper = upper * [-1.0, 1.0, -1.0]  # an elbow bulges backwards where a knee bulges forwards
    flexion, abduction, rotation = _angles(chest.T @ upper, side)
    if flexion < -90:  # overhead and beyond is reached by way of the front
        flexion += 360
    return Arm(flexion=flexion, abduction=abduction, rotation=rotation, elbow=elbow)
