"""Legs and trunks: standing, walking, sitting, crouching, bending, kneeling.

Legs that carry weight are solved backwards from feet that are flat on the ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tusk.data.synthetic.people.pose import (
    LEFT,
    RIGHT,
    Array,
    Bones,
    Generator,
    Leg,
    Pose,
    Trunk,
    ball_offset,
    clamped,
    hip_offset,
    pelvis_of,
    solve_leg,
    spread,
    turn_x,
    turn_y,
)

# One stride of level walking in steps of a tenth, from heel strike: textbook angles of a healthy gait.
GAIT_HIP = (30.0, 25.0, 17.0, 7.0, -3.0, -10.0, -4.0, 13.0, 27.0, 33.0, 30.0)
GAIT_KNEE = (5.0, 16.0, 15.0, 8.0, 5.0, 11.0, 38.0, 60.0, 46.0, 14.0, 5.0)
GAIT_ANKLE = (0.0, -4.0, 3.0, 7.0, 10.0, 3.0, -18.0, -6.0, 1.0, 1.0, 0.0)


@dataclass(frozen=True)
class Foot:
    """Where the ball of a foot is wanted: metres to the left and front of the hips, on the ground."""

    x: float
    z: float
    turn: float  # outwards
    heel: float = 0.0  # by how many degrees the heel is lifted


def _upright(rng: Generator, lean: float = 1.0, tilt: float = 0.0) -> Trunk:
    """A trunk at ease, the head looking somewhere; the spine makes up for a tilt of the hips."""
    look = spread(rng, 0, 14)
    return clamped(
        Trunk(
            lean=lean,
            tilt=tilt,
            spine_bend=spread(rng, 2, 3),
            spine_side=spread(rng, -0.6 * tilt, 2),
            spine_twist=spread(rng, 0, 4) + 0.1 * look,
            chest_bend=spread(rng, 3, 3),
            chest_side=spread(rng, -0.5 * tilt, 2),
            chest_twist=spread(rng, 0, 4) + 0.2 * look,
            neck_bend=spread(rng, 6, 6),
            neck_side=spread(rng, 0, 4),
            neck_twist=look,
            nod=spread(rng, 0, 5),
        )
    )


def _plant(trunk: Trunk, left: Foot, right: Foot, bones: Bones, height: float) -> Pose:
    """Legs that reach both feet from hips at this height (at most: hips come down until both can be reached)."""
    pelvis = pelvis_of(trunk)
    wanted = [(LEFT, left), (RIGHT, right)]
    for side, foot in wanted:
        ankle = _ankle(side, foot, bones)
        hip = pelvis @ hip_offset(side, bones)
        level2 = float((ankle[0] - hip[0]) ** 2 + (ankle[2] - hip[2]) ** 2)
        reach2 = (0.996 * (bones.thigh + bones.shank)) ** 2
        height = min(height, float(ankle[1] - hip[1]) + math.sqrt(max(reach2 - level2, 0.05)))
    legs = {}
    for side, foot in wanted:
        for _ in range(4):  # an ankle that cannot bend so far lifts its heel
            hip = pelvis @ hip_offset(side, bones) + [0.0, height, 0.0]
            turned = _foot_frame(side, foot)
            leg = solve_leg(pelvis, hip, _ankle(side, foot, bones), turned, side, bones, min(foot.heel, 60.0))
            if leg.ankle <= 29:
                break
            foot = replace(foot, heel=foot.heel + leg.ankle - 28)
        legs[side] = clamped(leg)
    return Pose(trunk=trunk, left_leg=legs[LEFT], right_leg=legs[RIGHT])


def _foot_frame(side: int, foot: Foot) -> Array:
    return turn_y(side * foot.turn) @ turn_x(foot.heel)


def _ankle(side: int, foot: Foot, bones: Bones) -> Array:
    offset: Array = _foot_frame(side, foot) @ ball_offset(bones)
    return np.array([side * foot.x, bones.sole, foot.z]) - offset


def _feet(rng: Generator, bones: Bones, width: float, ahead: float, stagger: float, turn: float) -> tuple[Foot, Foot]:
    """Two flat feet; `width` and `ahead` are of the ankles, so that turning the feet does not move the weight."""
    step = spread(rng, 0, stagger)
    feet = []
    for sign in (1, -1):
        out = spread(rng, turn, 5)
        ahead_of_ankle = bones.foot * math.cos(math.radians(out))
        outside = bones.foot * math.sin(math.radians(out))
        x = max(spread(rng, width, 0.15 * width), 0.07) + outside
        feet.append(Foot(x=x, z=ahead + sign * step + ahead_of_ankle, turn=out))
    return feet[0], feet[1]


def stand(rng: Generator, bones: Bones) -> Pose:
    trunk = _upright(rng, spread(rng, 1, 2), spread(rng, 0, 2.5))
    left, right = _feet(rng, bones, spread(rng, 0.125, 0.02), -0.01, 0.05, 10)
    return _plant(trunk, left, right, bones, height=2.0)


def stride(rng: Generator, bones: Bones) -> Pose:
    """Walking: both legs follow one gait, half a stride apart."""
    del bones
    phase, effort = float(rng.uniform(0, 1)), spread(rng, 0.95, 0.12)
    legs = []
    for shift in (0.0, 0.5):
        at = (phase + shift) % 1.0 * 10
        hip, knee, ankle = (float(np.interp(at, range(11), curve)) for curve in (GAIT_HIP, GAIT_KNEE, GAIT_ANKLE))
        push_off = max(0.0, 1 - abs(at - 5.6) / 1.2)
        leg = Leg(effort * hip, 1.5, 5.0, 3 + effort * knee, effort * ankle, -1.5, 3.0, 28 * push_off)
        legs.append(clamped(leg))
    # The shoulders turn against the hips: left shoulder forward when the right leg is.
    turned = 0.25 * (legs[0].flexion - legs[1].flexion)
    trunk = replace(_upright(rng, spread(rng, 3, 1.5)), spine_twist=0.4 * turned, chest_twist=0.6 * turned)
    return Pose(trunk=clamped(trunk), left_leg=legs[0], right_leg=legs[1])


def sit(rng: Generator, bones: Bones) -> Pose:
    trunk = replace(_upright(rng, spread(rng, -6, 6)), spine_bend=spread(rng, 8, 6), chest_bend=spread(rng, 8, 4))
    left, right = _feet(rng, bones, spread(rng, 0.14, 0.03), 0.93 * bones.thigh + spread(rng, 0.02, 0.08), 0.06, 10)
    return _plant(clamped(trunk), left, right, bones, height=(bones.shank + bones.ankle) * spread(rng, 1.0, 0.05))


def sit_on_floor(rng: Generator, bones: Bones) -> Pose:
    trunk = replace(_upright(rng, spread(rng, -21, 4)), spine_bend=spread(rng, 22, 6), chest_bend=spread(rng, 16, 5))
    left, right = _feet(rng, bones, spread(rng, 0.15, 0.03), spread(rng, 0.60, 0.05), 0.04, 8)
    return _plant(clamped(trunk), left, right, bones, height=0.105)


def crouch(rng: Generator, bones: Bones) -> Pose:
    depth = float(rng.uniform(0, 1))
    trunk = _upright(rng, 14 + 16 * depth)
    trunk = replace(trunk, spine_bend=spread(rng, 14, 4), chest_bend=spread(rng, 8, 3), neck_bend=spread(rng, -8, 8))
    left, right = _feet(rng, bones, spread(rng, 0.18, 0.03), 0.12 + 0.02 * depth, 0.05, 18)
    height = (0.62 - 0.28 * depth) * (bones.thigh + bones.shank) + bones.ankle
    return _plant(clamped(trunk), left, right, bones, height)


def bend(rng: Generator, bones: Bones) -> Pose:
    """Bent over at the hips, which move back so that the weight stays over the feet."""
    depth = float(rng.uniform(0, 1))
    trunk = _upright(rng, 28 + 32 * depth)
    trunk = replace(trunk, spine_bend=18 + 16 * depth, chest_bend=12 + 10 * depth, neck_bend=spread(rng, -5, 8))
    left, right = _feet(rng, bones, spread(rng, 0.14, 0.02), 0.10 + 0.08 * depth, 0.05, 8)
    return _plant(
        clamped(trunk), left, right, bones, height=spread(rng, 0.955, 0.015) * (bones.thigh + bones.shank) + 0.07
    )


def kneel(rng: Generator, bones: Bones) -> Pose:
    """On one knee, the other foot in front."""
    trunk = _upright(rng, spread(rng, 4, 3))
    front = Foot(x=spread(rng, 0.14, 0.02), z=0.95 * bones.thigh + bones.foot + spread(rng, 0.0, 0.04), turn=6)
    back = Foot(x=spread(rng, 0.11, 0.01), z=-0.86 * bones.shank, turn=2, heel=72)
    left, right = (front, back) if rng.random() < 0.5 else (back, front)
    return _plant(trunk, left, right, bones, height=0.965 * bones.thigh + 0.08)
