"""Arms: hanging, swinging, waving, reaching, pointing, phoning and so on, each solved from where the hand is wanted.

Every function draws one arm of somebody whose trunk and legs are posed already: `body` is where those are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tusk.data.synthetic.people.pose import (
    ARM_START,
    LEFT,
    LEG_START,
    Arm,
    Array,
    Bones,
    Generator,
    Pose,
    Skeleton,
    solve_arm,
    spread,
)

ArmAction = Callable[[Generator, int, Skeleton, Pose, Bones], Arm]


def _reach(
    rng: Generator, side: int, at: Array, elbow: Array, body: Skeleton, bones: Bones, raised: float = 0.0
) -> Arm:
    """An arm with its wrist at a point of the body's space, its elbow out in a direction of the chest's frame."""
    first = ARM_START[side]
    # The collar bone lifts the shoulder before the arm is solved.
    collar = np.array([0.0, math.sin(math.radians(raised)) * bones.shoulder_width, 0.0])
    shoulder = body.joints[first + 1] + body.chest @ collar
    outwards = np.array([side * elbow[0], elbow[1], elbow[2]])
    arm = solve_arm(body.chest, shoulder, at, body.chest @ outwards, side, bones)
    return replace(arm, raised=raised, pronation=spread(rng, 20, 20), wrist=spread(rng, 0, 10))


def _from_shoulder(body: Skeleton, side: int, x: float, y: float, z: float) -> Array:
    """A point outwards, above and in front of the shoulder, by the chest's frame."""
    point: Array = body.joints[ARM_START[side] + 1] + body.chest @ [side * x, y, z]
    return point


def hang(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del side, body, bones
    # Arms hang straight down whatever the chest does.
    bent = pose.trunk.lean + pose.trunk.spine_bend + pose.trunk.chest_bend
    elbow = abs(spread(rng, 16, 9))
    return Arm(0, bent + spread(rng, -4, 4), spread(rng, 12, 3), spread(rng, -8, 8), elbow, spread(rng, 15, 15))


def swing(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    """The arm goes forward as the leg of the other side does."""
    del body, bones
    leg = pose.right_leg if side == LEFT else pose.left_leg
    forwards = 0.9 * (leg.flexion - 10)
    return Arm(
        0, forwards + 4, spread(rng, 10, 2), spread(rng, -8, 6), 18 + 0.6 * max(forwards + 8, 0), spread(rng, 15, 10)
    )


def wave(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    at = _from_shoulder(body, side, spread(rng, 0.2, 0.07), spread(rng, 0.24, 0.08), spread(rng, 0.16, 0.05))
    arm = _reach(rng, side, at, np.array([0.8, -0.6, 0.1]), body, bones, raised=8)
    return replace(arm, pronation=spread(rng, 30, 25), wrist=spread(rng, 0, 20))


def reach(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    rise, out = math.radians(float(rng.uniform(-5, 75))), math.radians(spread(rng, 12, 12))
    far = spread(rng, 0.9, 0.04) * (bones.upper_arm + bones.forearm)
    ahead = math.cos(rise) * far
    at = _from_shoulder(body, side, math.sin(out) * ahead, math.sin(rise) * far, math.cos(out) * ahead)
    return _reach(rng, side, at, np.array([0.5, -1.0, 0.0]), body, bones, raised=6 + 10 * math.sin(max(rise, 0)))


def point(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    rise, out = math.radians(spread(rng, 2, 12)), math.radians(float(rng.uniform(-15, 75)))
    far = spread(rng, 0.96, 0.015) * (bones.upper_arm + bones.forearm)
    ahead = math.cos(rise) * far
    at = _from_shoulder(body, side, math.sin(out) * ahead, math.sin(rise) * far, math.cos(out) * ahead)
    arm = _reach(rng, side, at, np.array([0.4, -1.0, -0.2]), body, bones, raised=5)
    return replace(arm, wrist=0.0)


def phone(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    at = body.joints[14] + body.head @ [
        side * spread(rng, 0.12, 0.008),
        spread(rng, -0.13, 0.01),
        spread(rng, 0.10, 0.01),
    ]
    arm = _reach(rng, side, at, np.array([0.5, -1.0, 0.0]), body, bones)
    return replace(arm, pronation=-20, wrist=0.0)


def eat(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    at = body.joints[14] + body.head @ [side * 0.05, spread(rng, -0.14, 0.02), spread(rng, 0.20, 0.02)]
    return replace(_reach(rng, side, at, np.array([0.7, -0.9, 0.1]), body, bones), pronation=30)


def photograph(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    at = body.joints[14] + body.head @ [side * 0.075, spread(rng, -0.03, 0.01), spread(rng, 0.31, 0.02)]
    return replace(_reach(rng, side, at, np.array([0.8, -0.8, 0.0]), body, bones, raised=6), pronation=-10)


def gesture(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    at = _from_shoulder(body, side, spread(rng, 0.04, 0.07), spread(rng, -0.20, 0.06), spread(rng, 0.33, 0.05))
    arm = _reach(rng, side, at, np.array([0.6, -0.8, -0.5]), body, bones)
    return replace(arm, pronation=spread(rng, -10, 30), wrist=spread(rng, 0, 15))


def fold(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    """Crossed arms: the right forearm lies higher and further out, over the left."""
    del pose
    above, front = (-0.25, 0.17) if side == LEFT else (-0.165, 0.215)
    at = _from_shoulder(body, side, spread(rng, -0.225, 0.01), spread(rng, above, 0.015), spread(rng, front, 0.015))
    return replace(_reach(rng, side, at, np.array([0.8, -0.8, 0.0]), body, bones), pronation=20, wrist=30)


def akimbo(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    at = body.pelvis @ [side * spread(rng, 0.205, 0.006), spread(rng, 0.10, 0.015), spread(rng, 0.02, 0.01)]
    return replace(_reach(rng, side, at, np.array([1.0, 0.0, -0.45]), body, bones), pronation=60, wrist=45)


def behind(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    del pose
    at = body.pelvis @ [side * 0.06, spread(rng, 0.07, 0.01), -0.19 - 0.02 * side]
    return replace(_reach(rng, side, at, np.array([0.8, 0.0, -0.8]), body, bones), pronation=40)


def rest(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    """The hand on the thigh, near the knee."""
    del pose
    hip, knee = body.joints[LEG_START[side]], body.joints[LEG_START[side] + 1]
    share = spread(rng, 0.68, 0.08)
    above = np.array([0.0, 0.105, 0.0])
    arm = _reach(rng, side, hip + share * (knee - hip) + above, np.array([0.8, -0.3, -0.5]), body, bones)
    return replace(arm, pronation=65, wrist=0.0)


def embrace(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    """The hand on the shin of a leg that is drawn up."""
    del pose
    knee, ankle = (body.joints[LEG_START[side] + k] for k in (1, 2))
    at = knee + spread(rng, 0.3, 0.08) * (ankle - knee) + [side * 0.03, 0.05, 0.075]
    return replace(_reach(rng, side, at, np.array([1.0, -0.4, 0.0]), body, bones), pronation=50, wrist=20)


def pick_up(rng: Generator, side: int, body: Skeleton, pose: Pose, bones: Bones) -> Arm:
    """Both hands down to something in front of the feet."""
    del pose
    toes = body.joints[LEG_START[side] + 4]
    share = float(rng.uniform(0.55, 0.95))
    shoulder = body.joints[ARM_START[side] + 1]
    aim = np.array([side * 0.09, toes[1] + 0.10, toes[2] + 0.14]) - shoulder
    far = share * (bones.upper_arm + bones.forearm) / math.sqrt(float(aim @ aim))
    return _reach(rng, side, shoulder + min(far, 1.0) * aim, np.array([0.6, -1.0, 0.0]), body, bones)
