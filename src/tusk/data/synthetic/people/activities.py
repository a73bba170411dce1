"""What people do: which legs go with which arms, and a moment of it in which no limb passes through another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tusk.data.synthetic.people.arms import (
    ArmAction,
    akimbo,
    behind,
    eat,
    embrace,
    fold,
    gesture,
    hang,
    phone,
    photograph,
    pick_up,
    point,
    reach,
    rest,
    swing,
    wave,
)
from tusk.data.synthetic.people.legs import bend, crouch, kneel, sit, sit_on_floor, stand, stride
from tusk.data.synthetic.people.pose import (
    ARM_START,
    LEFT,
    LEG_START,
    RIGHT,
    Array,
    Bones,
    Generator,
    Pose,
    Skeleton,
    clamped,
    forward,
)

TRIES = 12  # poses drawn before the least entangled is taken
CLEAR = 0.03  # metres by which limbs may sink into one another: flesh and cloth give way


@dataclass(frozen=True)
class Activity:
    name: str
    legs: Callable[[Generator, Bones], Pose]
    one_arm: ArmAction  # left or right, as it falls
    other_arm: ArmAction


ACTIVITIES = (
    Activity("standing", stand, hang, hang),
    Activity("walking", stride, swing, swing),
    Activity("walking and phoning", stride, phone, swing),
    Activity("sitting", sit, rest, rest),
    Activity("sitting and talking", sit, gesture, rest),
    Activity("eating", sit, eat, rest),
    Activity("sitting on the floor", sit_on_floor, embrace, embrace),
    Activity("reaching", stand, reach, hang),
    Activity("waving", stand, wave, hang),
    Activity("phoning", stand, phone, hang),
    Activity("photographing", stand, photograph, photograph),
    Activity("pointing", stand, point, hang),
    Activity("talking", stand, gesture, gesture),
    Activity("crossing arms", stand, fold, fold),
    Activity("hands on hips", stand, akimbo, akimbo),
    Activity("waiting", stand, behind, behind),
    Activity("bending", bend, pick_up, pick_up),
    Activity("crouching", crouch, gesture, rest),
    Activity("kneeling", kneel, gesture, rest),
)


def act(activity: Activity, rng: Generator, bones: Bones, girth: float = 1.0) -> Pose:
    """One random moment of an activity; every angle is within its limits, no limb inside another."""
    tried = []
    for _ in range(TRIES):
        pose = _moment(activity, rng, bones)
        tried.append((overlap(forward(pose, bones), bones, girth), pose))
        if tried[-1][0] < CLEAR:
            break
    return min(tried, key=lambda one: one[0])[1]


def _moment(activity: Activity, rng: Generator, bones: Bones) -> Pose:
    pose = activity.legs(rng, bones)
    body = forward(pose, bones)
    left, right = activity.one_arm, activity.other_arm
    if rng.random() < 0.5:
        left, right = right, left
    return replace(
        pose,
        left_arm=clamped(left(rng, LEFT, body, pose, bones)),
        right_arm=clamped(right(rng, RIGHT, body, pose, bones)),
    )


@dataclass(frozen=True)
class _Capsules:
    """Limbs as what other limbs may bump into."""

    starts: Array  # (N, 3)
    ends: Array  # (N, 3)
    radii: Array  # (N,)

    def depth(self, points: Array, radii: Array) -> float:
        """How deep the worst of some balls sinks into the worst of these; negative where all are clear."""
        axis = self.ends - self.starts
        share = np.sum((points[:, None] - self.starts) * axis, axis=2) / np.sum(axis * axis, axis=1)
        nearest = self.starts + np.clip(share, 0.0, 1.0)[:, :, None] * axis
        distance = np.sqrt(np.sum((points[:, None] - nearest) ** 2, axis=2))
        return float(np.max(radii[:, None] + self.radii - distance))


def overlap(body: Skeleton, bones: Bones, girth: float) -> float:
    """By how many metres an arm sinks into trunk, head, legs or the other arm, or a leg into the other leg."""
    joints, scale = body.joints, (bones.spine + bones.chest) / (Bones().spine + Bones().chest)
    thick = scale * girth
    flank, below_neck = np.array([0.065 * thick, 0.0, 0.0]), np.array([0.0, 0.09 * scale, 0.0])
    trunk_and_head = _Capsules(
        np.stack([*(joints[0] + side * body.pelvis @ flank for side in (LEFT, RIGHT)), joints[14]]),
        np.stack(
            [
                *(joints[13] + body.chest @ (side * flank - below_neck) for side in (LEFT, RIGHT)),
                joints[15] - body.head @ below_neck,
            ]
        ),
        np.array([0.1 * thick, 0.1 * thick, 0.088 * scale]),
    )
    worst = -1.0
    for side in (LEFT, RIGHT):
        elbow, wrist, tip = (joints[ARM_START[side] + k] for k in (2, 3, 6))
        arm = np.stack([elbow, 0.5 * (elbow + wrist), wrist, tip, tip + 0.5 * (tip - wrist)])
        arm_radii = np.array([0.036, 0.034, 0.027, 0.02, 0.014]) * thick
        hip, knee, ankle, ball, toe = (joints[LEG_START[side] + k] for k in range(5))
        leg = np.stack([knee, 0.5 * (knee + ankle), ankle, ball, toe])
        leg_radii = np.array([0.054 * thick, 0.048 * thick, 0.036 * thick, bones.sole, bones.sole])
        own_leg = _Capsules(np.stack([hip, knee]), np.stack([knee, ankle]), np.array([0.066, 0.048]) * thick)
        first = LEG_START[-side]
        other_leg = replace(own_leg, starts=joints[first : first + 2], ends=joints[first + 1 : first + 3])
        first = ARM_START[-side]
        hands = _Capsules(
            joints[[first + 2, first + 3]], joints[[first + 3, first + 6]], np.array([0.034, 0.02]) * thick
        )
        bumps = [solid.depth(arm, arm_radii) for solid in (trunk_and_head, own_leg, other_leg, hands)]
        worst = max(worst, *bumps, other_leg.depth(leg, leg_radii))
    return worst
