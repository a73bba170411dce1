from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

from tusk.data.dataset import Dataset
from tusk.data.datasets.h36m import JOINT_NAMES, facing_away
from tusk.data.datasets.people import People, draw_person
from tusk.data.synthetic.people.activities import ACTIVITIES, CLEAR, act, overlap
from tusk.data.synthetic.people.appearance import draw_appearance, draw_bones
from tusk.data.synthetic.people.body import build, lowest
from tusk.data.synthetic.people.pose import (
    ARM_START,
    LEFT,
    LEG_START,
    RIGHT,
    Arm,
    Bones,
    Leg,
    Pose,
    Trunk,
    clamped,
    forward,
    solve_arm,
    solve_leg,
)
from tusk.data.synthetic.people.render import depths
from tusk.errors import UsageError

seeds = st.integers(0, 2**32)
# Which joint each bone of the 32-joint skeleton hangs on; coinciding joints hang on their double.
PARENTS = (
    0,
    0,
    1,
    2,
    3,
    4,
    0,
    6,
    7,
    8,
    9,
    0,
    11,
    12,
    13,
    14,
    13,
    16,
    17,
    18,
    19,
    19,
    19,
    22,
    13,
    24,
    25,
    26,
    27,
    27,
    27,
    30,
)
COINCIDING = (11, 16, 20, 23, 24, 28, 31)


def parts(pose: Pose) -> tuple[Trunk | Leg | Arm, ...]:
    return pose.trunk, pose.left_leg, pose.right_leg, pose.left_arm, pose.right_arm


def lengths(joints: np.ndarray) -> np.ndarray:
    return np.linalg.norm(joints - joints[list(PARENTS)], axis=1)


def random_part(rng: np.random.Generator, kind: type) -> Trunk | Leg | Arm:
    return kind(**{f.name: rng.uniform(f.metadata["low"], f.metadata["high"]) for f in fields(kind)})


@settings(max_examples=80, deadline=None)
@given(seeds, st.sampled_from(ACTIVITIES))
def test_every_angle_is_within_human_limits(seed: int, activity: object) -> None:
    rng = np.random.default_rng(seed)
    bones = draw_bones(rng)
    pose = act(activity, rng, bones)  # type: ignore[arg-type]
    for part in parts(pose):
        for f in fields(part):
            assert f.metadata["low"] <= getattr(part, f.name) <= f.metadata["high"], f.name
    # What the limits are for, seen in the joints: knees bend backwards, elbows do not.
    body = forward(pose, bones)
    for side, leg in ((LEFT, pose.left_leg), (RIGHT, pose.right_leg)):
        hip, knee, ankle = body.joints[LEG_START[side] : LEG_START[side] + 3]
        reach = np.linalg.norm(hip - ankle)
        assert reach**2 == pytest.approx(
            bones.thigh**2 + bones.shank**2 + 2 * bones.thigh * bones.shank * np.cos(np.radians(leg.knee)), rel=1e-6
        )
        if leg.knee > 5:  # the knee is in front of the line from hip to ankle, where the foot points
            assert (knee - (hip + ankle) / 2) @ body.feet[side][:, 2] > 0 or leg.flexion > 80


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_bones_keep_their_length_in_any_pose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bones = draw_bones(rng)
    pose = Pose(*(random_part(rng, kind) for kind in (Trunk, Leg, Leg, Arm, Arm)))  # type: ignore[arg-type]
    at_rest, posed = lengths(forward(Pose(), bones).joints), lengths(forward(pose, bones).joints)
    np.testing.assert_allclose(posed, at_rest, atol=1e-9)
    assert set(np.nonzero(at_rest < 1e-12)[0]) == {0, *COINCIDING}


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from([LEFT, RIGHT]))
def test_limbs_solved_backwards_arrive(seed: int, side: int) -> None:
    rng = np.random.default_rng(seed)
    bones, trunk, leg, arm = draw_bones(rng), *(random_part(rng, kind) for kind in (Trunk, Leg, Arm))
    pose = Pose(trunk, leg, leg, arm, arm)  # type: ignore[arg-type]
    body = forward(pose, bones)
    hip, _, ankle = body.joints[LEG_START[side] : LEG_START[side] + 3]
    shoulder, elbow, wrist = body.joints[ARM_START[side] + 1 : ARM_START[side] + 4]
    solved = solve_leg(body.pelvis, hip, ankle, body.feet[side], side, bones, toes=leg.toes)  # type: ignore[union-attr]
    arm_again = solve_arm(body.chest, shoulder, wrist, elbow - (shoulder + wrist) / 2, side, bones)
    arms = Arm(**{**vars(arm_again), "raised": arm.raised})  # type: ignore[union-attr]
    again = forward(Pose(trunk, solved, solved, arms, arms), bones)  # type: ignore[arg-type]
    # A limb stretched out fully is bent by a hair, so as to have a direction to bend in.
    np.testing.assert_allclose(again.joints[LEG_START[side] + 2], ankle, atol=1e-3)
    np.testing.assert_allclose(again.feet[side], body.feet[side], atol=1e-6)
    np.testing.assert_allclose(again.joints[ARM_START[side] + 3], wrist, atol=1e-3)


def test_attention() -> None:
    """All angles zero: upright, symmetric, left to the left, toes in front, the measures of the default bones."""
    joints = forward(Pose(), Bones()).joints
    left, right = (
        joints[[JOINT_NAMES.index(f"{side}{n}") for n in ("UpLeg", "Foot", "ToeSite", "Arm", "Hand")]]
        for side in ("Left", "Right")
    )
    np.testing.assert_allclose(left * [-1, 1, 1], right, atol=1e-12)
    assert (left[:, 0] > 0).all()
    height = joints[15, 1] - joints[8, 1] + Bones().ankle
    assert 1.68 < height < 1.8
    toe, ankle = joints[JOINT_NAMES.index("LeftToeSite")], joints[JOINT_NAMES.index("LeftFoot")]
    assert toe[2] > ankle[2] + 0.1
    assert joints[JOINT_NAMES.index("LeftThumbSite"), 2] > joints[JOINT_NAMES.index("LeftHand"), 2]


def test_clamped_brings_back_each_angle() -> None:
    assert clamped(Leg(knee=-20, flexion=500, toes=7)) == Leg(knee=0, flexion=130, toes=7)


def test_signs_of_the_angles() -> None:
    def moved(pose: Pose, joint: str) -> np.ndarray:
        number = JOINT_NAMES.index(joint)
        return forward(pose, Bones()).joints[number] - forward(Pose(), Bones()).joints[number]

    assert moved(Pose(left_leg=Leg(flexion=40)), "LeftFoot")[2] > 0.3
    assert moved(Pose(left_leg=Leg(knee=40)), "LeftFoot")[2] < -0.2
    assert moved(Pose(left_leg=Leg(abduction=30)), "LeftFoot")[0] > 0.3
    assert moved(Pose(right_leg=Leg(abduction=30)), "RightFoot")[0] < -0.3
    assert moved(Pose(left_leg=Leg(ankle=20)), "LeftToeSite")[1] > 0.04
    assert moved(Pose(right_leg=Leg(foot_turn=20)), "RightToeSite")[0] < -0.04
    assert moved(Pose(right_arm=Arm(elbow=60)), "RightHand")[2] > 0.2
    assert moved(Pose(right_arm=Arm(abduction=60)), "RightHand")[0] < -0.4
    assert moved(Pose(left_arm=Arm(elbow=90, rotation=40)), "LeftHand")[0] > 0.1
    assert moved(Pose(left_arm=Arm(wrist=30)), "LeftWristEnd")[0] < -0.03
    for side, pose in (("Left", Pose(left_arm=Arm(raised=20))), ("Right", Pose(right_arm=Arm(raised=20)))):
        assert moved(pose, f"{side}Arm")[1] > 0.04
        resting = forward(Pose(), Bones()).joints
        assert resting[JOINT_NAMES.index(f"{side}Arm"), 1] < resting[JOINT_NAMES.index("Neck"), 1] - 0.02
    assert moved(Pose(trunk=Trunk(spine_bend=30)), "Head")[2] > 0.2
    assert moved(Pose(trunk=Trunk(chest_side=15)), "Head")[0] < -0.05


def test_feet_are_on_the_ground_and_limbs_apart() -> None:
    entangled = 0
    for number, activity in enumerate(ACTIVITIES):
        for draw in range(12):
            rng = np.random.default_rng((number, draw))
            bones, appearance = draw_bones(rng), draw_appearance(rng)
            pose = act(activity, rng, bones, appearance.girth)
            body = forward(pose, bones)
            depth = overlap(body, bones, appearance.girth)
            assert depth < 2 * CLEAR, activity.name
            entangled += depth > CLEAR
            ground = lowest(build(body, appearance, bones))
            gaps = sorted(body.joints[LEG_START[side] + 3, 1] - bones.sole - ground for side in (LEFT, RIGHT))
            floor = "floor" in activity.name
            assert -1e-9 <= gaps[0] < (0.08 if floor else 0.05), activity.name
            if "walking" not in activity.name:  # who walks has one foot in the air
                assert gaps[1] < (0.08 if floor else 0.035), activity.name
    assert entangled <= 5


def test_walking_alternates() -> None:
    walking = next(activity for activity in ACTIVITIES if activity.name == "walking")
    ahead, arms = [], []
    for seed in range(200):
        pose = act(walking, np.random.default_rng(seed), Bones())
        ahead.append(pose.left_leg.flexion - pose.right_leg.flexion)
        arms.append(pose.left_arm.flexion - pose.right_arm.flexion)
    assert np.corrcoef(ahead, arms)[0, 1] < -0.95, "each arm swings with the other side's leg"
    assert abs(np.mean(ahead)) < 6 and np.std(ahead) > 15


def test_overlap_sees_a_hand_in_the_belly() -> None:
    bones = Bones()
    apart = forward(Pose(left_arm=Arm(abduction=30), right_arm=Arm(abduction=30)), bones)
    inside = forward(Pose(left_arm=Arm(abduction=5, rotation=-90, elbow=90), right_arm=Arm(abduction=30)), bones)
    crossed = forward(
        Pose(left_leg=Leg(abduction=-12), right_leg=Leg(abduction=-12), left_arm=Arm(abduction=30)), bones
    )
    assert overlap(apart, bones, 1.0) < 0.01
    assert overlap(inside, bones, 1.0) > 0.05
    assert overlap(crossed, bones, 1.0) > 0.05


def test_same_bytes_in_any_order() -> None:
    forwards, backwards = People(count=6, seed=3), People(count=6, seed=3)
    first = [(forwards.image(i), forwards.truth(i)) for i in range(6)]
    for index in reversed(range(6)):
        truth, image = backwards.truth(index), backwards.image(index)
        assert image.tobytes() == first[index][0].tobytes()
        assert truth.points.tobytes() == first[index][1].points.tobytes()
        assert truth.mask.tobytes() == first[index][1].mask.tobytes()
    others = [People(count=9, seed=3), People(count=6, seed=4), People("test", count=6, seed=3)]
    assert [np.array_equal(other.image(2), first[2][0]) for other in others] == [True, False, False]
    image = forwards.image(1)
    image[:] = 0
    assert forwards.image(1).any(), "what is handed out is the caller's own"


def test_images_and_truth() -> None:
    people = People(count=40, size=112)
    assert isinstance(people, Dataset) and people.class_names == JOINT_NAMES
    visible = near = 0
    for index in range(40):
        image, truth, person = people.image(index), people.truth(index), people.person(index)
        assert image.shape == (112, 112, 3) and image.dtype == np.uint8
        assert truth.mask.shape == (112, 112) and set(np.unique(truth.mask)) == {0, 1}
        np.testing.assert_array_equal(truth.classes, np.arange(32))
        ys, xs = np.nonzero(truth.mask)
        tall, wide = np.ptp(ys) + 1, np.ptp(xs) + 1
        assert 0.82 * 112 < max(tall, wide) < 0.97 * 112, "the person fills most of the frame"
        assert min(ys.min(), xs.min()) > 0 and max(ys.max(), xs.max()) < 111, "nothing is cut off"
        pieces = np.bincount(ndimage.label(truth.mask, np.ones((3, 3)))[0].ravel())[1:]
        assert pieces.max() > 0.97 * pieces.sum(), "a body is in one piece"
        far_from_person = ndimage.distance_transform_edt(truth.mask == 0)
        assert (image[far_from_person > 1.5] == 255).all()
        assert (image[ndimage.binary_erosion(truth.mask)] < 255).any(axis=1).all()
        # Joints lie within the body, so on the silhouette whether seen or not.
        rows, columns = np.rint(truth.points[:, ::-1]).astype(int).T
        off = far_from_person[rows, columns]
        near += int((off <= 1.5).sum())
        visible += len(off)
        assert off.max() < 5
        np.testing.assert_array_equal(truth.points[[11, 16, 20]], truth.points[[0, 13, 19]])
        # Every joint is behind the surface that is seen at its place, by no more than the body is deep.
        ray = person.joints[:, :2] / person.joints[:, 2:]
        surface = np.min([depths(shape, ray[:, 0], ray[:, 1]) for shape in person.shapes], axis=0)
        inside = person.joints[:, 2] - surface[: len(ray)]
        assert (inside[np.isfinite(inside)] > -0.03).all()
    assert near / visible > 0.99


def test_left_is_on_the_right_when_facing_the_camera() -> None:
    for seed in range(300):
        person = draw_person(np.random.default_rng(seed), 112)
        points = person.camera.project(person.joints)
        hips = points[JOINT_NAMES.index("LeftUpLeg"), 0] - points[JOINT_NAMES.index("RightUpLeg"), 0]
        if abs(person.heading) < 70:
            assert hips > 0 and not facing_away(points), seed
        elif abs(person.heading) > 110:
            assert hips < 0 and facing_away(points), seed
        # Heading 90 is towards the right of the image, and so are the feet.
        feet = (points[[5, 10], 0] - points[[3, 8], 0]).sum()
        if 45 < abs(person.heading) < 135:
            assert np.sign(feet) == np.sign(person.heading), seed


@pytest.mark.slow
def test_people_vary() -> None:
    people = [draw_person(np.random.default_rng((7, seed)), 112) for seed in range(400)]
    headings = [(person.heading + 180) / 360 for person in people]
    assert stats.kstest(headings, "uniform").pvalue > 0.01
    counts = [sum(person.activity == activity.name for person in people) for activity in ACTIVITIES]
    assert stats.chisquare(counts).pvalue > 0.01
    assert {person.appearance.legwear for person in people} == {"trousers", "shorts", "skirt"}
    statures = [person.bones.thigh + person.bones.spine for person in people]
    assert 0.03 < np.std(statures) / np.mean(statures) < 0.07
    for colour in ("skin", "hair", "shirt", "lower", "shoes"):
        assert len({tuple(getattr(person.appearance, colour)) for person in people}) >= 6


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(UsageError, match="did you mean 'test'"):
        People("tset")
    for setting in ({"count": 0}, {"seed": -1}, {"size": 4}):
        with pytest.raises(UsageError, match=next(iter(setting))):
            People(**setting)
    with pytest.raises(IndexError):
        People(count=3).image(3)
