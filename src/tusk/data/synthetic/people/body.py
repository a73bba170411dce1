"""Flesh and clothes on a skeleton: the round cones and ellipsoids that a person is made of."""

from __future__ import annotations

import numpy as np

from tusk.data.synthetic.people.appearance import Appearance
from tusk.data.synthetic.people.pose import ARM_START, LEFT, LEG_START, RIGHT, Array, Bones, Skeleton
from tusk.data.synthetic.people.render import Ellipsoid, RoundCone, Shape


def build(skeleton: Skeleton, appearance: Appearance, bones: Bones) -> list[Shape]:
    """Everything that is seen of the person, in body coordinates."""
    scale = (bones.spine + bones.chest) / (Bones().spine + Bones().chest)
    shapes = _trunk(skeleton, appearance, scale) + _head(skeleton, appearance, scale)
    for side in (LEFT, RIGHT):
        shapes += _leg(skeleton, appearance, bones, side, scale) + _arm(skeleton, appearance, side, scale)
    return shapes + _skirt(skeleton, appearance, scale) if appearance.legwear == "skirt" else shapes


def lowest(shapes: list[Shape]) -> float:
    """The height of the ground that carries these shapes."""
    feet = []
    for shape in shapes:
        if isinstance(shape, RoundCone):
            feet.append(
                min(shape.start[1] - shape.start_radius, shape.end[1] - shape.end_radius)
            )  # squashed ones are no lower
        else:
            feet.append(shape.centre[1] - np.sqrt(np.sum((shape.axes[1] * shape.radii) ** 2)))
    return float(min(feet))


def _trunk(body: Skeleton, appearance: Appearance, scale: float) -> list[Shape]:
    wide = scale * appearance.girth
    hips, middle, neck = body.joints[0], body.joints[12], body.joints[13]

    def lump(
        at: Array, frame: Array, offset: tuple[float, float, float], radii: tuple[float, ...], colour: Array
    ) -> Shape:
        return Ellipsoid(at + frame @ (scale * np.array(offset)), frame, wide * np.array(radii), colour)

    # One smooth surface from crotch to shoulders: squashed cones whose ends fit one another.
    hip_girth, waist_girth, chest_girth = (0.142, 0.126, 0.146) if appearance.bust else (0.138, 0.136, 0.16)
    base, belly = hips + body.pelvis @ [0.0, 0.03 * scale, -0.004], hips + body.waist @ [0.0, 0.125 * scale, 0.006]
    ribs, top = middle + body.chest @ [0.0, 0.055 * scale, 0.006], neck - body.chest @ [0.0, 0.105 * scale, 0.004]

    def column(start: Array, end: Array, radii: tuple[float, float], frame: Array, colour: Array) -> Shape:
        return RoundCone(start, end, wide * radii[0], wide * radii[1], colour, frame[:, 2], 0.7)

    shapes: list[Shape] = [
        column(base, belly, (hip_girth, waist_girth), body.pelvis, appearance.lower),
        column(belly, ribs, (waist_girth + 0.004, chest_girth), body.waist, appearance.shirt),
        column(ribs, top, (chest_girth, 0.135), body.chest, appearance.shirt),
    ]
    for side in (LEFT, RIGHT):
        shapes.append(lump(hips, body.pelvis, (side * 0.066, -0.03, -0.028), (0.08, 0.09, 0.08), appearance.lower))
        if appearance.bust:
            shapes.append(lump(middle, body.chest, (side * 0.06, 0.065, 0.054), (0.07, 0.076, 0.062), appearance.shirt))
        shoulder = body.joints[ARM_START[side] + 1]
        slope = neck + body.chest @ [side * 0.035 * scale, -0.012 * scale, -0.005 * scale]
        shapes.append(RoundCone(slope, shoulder, 0.048 * wide, 0.056 * wide, appearance.shirt))
        side_of_chest = middle + body.chest @ [side * 0.075 * scale, 0.06 * scale, 0.0]
        shapes.append(RoundCone(shoulder, side_of_chest, 0.056 * wide, 0.075 * wide, appearance.shirt))
    return shapes


def _head(body: Skeleton, appearance: Appearance, scale: float) -> list[Shape]:
    crown, frame = body.joints[15], body.head
    # The head's size varies little between people: not with girth.
    middle = crown - frame @ [0.0, 0.116 * scale, 0.0]

    def at(x: float, y: float, z: float) -> Array:
        return np.asarray(middle + frame @ (scale * np.array([x, y, z])))

    def lump(offset: tuple[float, float, float], radii: tuple[float, float, float], colour: Array) -> Shape:
        return Ellipsoid(at(*offset), frame, scale * np.array(radii), colour)

    throat, nape = at(0, -0.07, -0.012), body.joints[13] + body.chest @ [0.0, -0.01, 0.0]
    lip = 0.72 * appearance.skin + np.array([0.08, -0.02, -0.02])
    shapes: list[Shape] = [
        RoundCone(nape, throat, 0.056 * scale * appearance.girth, 0.052 * scale * appearance.girth, appearance.skin),
        # From the skull to the chin, narrower than deep.
        RoundCone(
            at(0, 0.024, -0.002), at(0, -0.066, 0.032), 0.092 * scale, 0.054 * scale, appearance.skin, frame[:, 0], 0.82
        ),
        lump((0, -0.024, 0.097), (0.013, 0.022, 0.016), appearance.skin),
        lump((0, -0.07, 0.08), (0.022, 0.008, 0.008), np.clip(lip, 0.0, 1.0)),
    ]
    for side in (LEFT, RIGHT):
        shapes.append(lump((side * 0.031, 0.006, 0.078), (0.013, 0.008, 0.012), 0.3 * appearance.skin))
        shapes.append(lump((side * 0.078, -0.008, -0.004), (0.01, 0.028, 0.018), appearance.skin))
    if appearance.hair_length > 0:
        shapes.append(lump((0, 0.036, -0.022), (0.083, 0.092, 0.094), appearance.hair))
        shapes.append(lump((0, -0.01, -0.05), (0.074, 0.075, 0.062), appearance.hair))
    if appearance.hair_length > 0.25:
        down = 0.5 * (frame + body.chest) @ [0.0, -scale * (appearance.hair_length - 0.18), -0.05 * scale]
        top = at(0, -0.01, -0.06)
        shapes.append(RoundCone(top, top + down, 0.068 * scale, 0.052 * scale, appearance.hair))
    return shapes


def _along(points: list[Array], radii: list[float], colours: list[Array]) -> list[Shape]:
    return [RoundCone(points[k], points[k + 1], radii[k], radii[k + 1], colours[k]) for k in range(len(colours))]


def _leg(body: Skeleton, appearance: Appearance, bones: Bones, side: int, scale: float) -> list[Shape]:
    hip, knee, ankle, ball, toe = (body.joints[LEG_START[side] + k] for k in range(5))
    thick, foot = scale * appearance.girth, body.feet[side]
    back = foot @ [0.0, 0.0, -1.0]
    calf = knee + 0.3 * (ankle - knee) + 0.012 * scale * back
    radii = [0.082 * thick, 0.056 * thick, 0.054 * thick, 0.037 * thick]
    if appearance.legwear == "trousers":
        hem = knee + 0.93 * (ankle - knee)
        loose = [r + 0.006 * scale for r in radii[:3]] + [0.046 * thick]
        shapes = _along([hip, knee, calf, hem], loose, [appearance.lower] * 3)
        shapes += _along([hem, ankle], [radii[3], radii[3]], [appearance.shoes])
    else:
        # Bare from below the top of the thigh: that much is always covered.
        top, top_radius = 0.6 * hip + 0.4 * knee, 0.6 * radii[0] + 0.4 * radii[1]
        shapes = _along([top, knee, calf, ankle], [top_radius, *radii[1:]], [appearance.skin] * 3)
    if appearance.legwear == "shorts":
        hem = hip + min(2 * appearance.hem, 0.97) * (knee - hip)
        shapes += _along([hip, hem], [0.088 * thick, 0.078 * thick], [appearance.lower])
    heel = ankle + foot @ [0.0, 0.034 * scale - bones.ankle, -0.042 * scale]
    tip = toe + 0.1 * (ball - toe)
    shapes += _along([ankle, heel], [0.038 * scale, 0.034 * scale], [appearance.shoes])
    shapes += _along([ankle, ball], [0.037 * scale, bones.sole * 1.05], [appearance.shoes])
    shapes += _along([heel, ball, tip], [0.034 * scale, bones.sole, 0.78 * bones.sole], [appearance.shoes] * 2)
    spread_ball = foot @ [side * 0.014 * scale, 0.0, -0.005 * scale]
    shapes += _along([ball + spread_ball, tip + spread_ball], [0.9 * bones.sole, 0.7 * bones.sole], [appearance.shoes])
    return shapes


def _skirt(body: Skeleton, appearance: Appearance, scale: float) -> list[Shape]:
    """Cloth from thigh to thigh, in rows so close that they look like one."""
    left, right = ([body.joints[LEG_START[side] + k] for k in (0, 1)] for side in (LEFT, RIGHT))
    folds: list[Shape] = []
    for share in np.linspace(0.0, min(2 * appearance.hem, 0.97), 16):
        ends = [leg[0] + float(share) * (leg[1] - leg[0]) for leg in (left, right)]
        flare = (0.094 + 0.012 * float(share)) * scale * appearance.girth
        folds.append(RoundCone(ends[0], ends[1], flare, flare, appearance.lower))
    return folds


def _arm(body: Skeleton, appearance: Appearance, side: int, scale: float) -> list[Shape]:
    shoulder, elbow, wrist = (body.joints[ARM_START[side] + k] for k in (1, 2, 3))
    thumb, tip, frame = body.joints[ARM_START[side] + 5], body.joints[ARM_START[side] + 6], body.hands[side]
    thick = scale * appearance.girth
    bulge = elbow + 0.25 * (wrist - elbow)
    points = [shoulder, elbow, bulge, wrist]
    radii = [0.054 * thick, 0.039 * thick, 0.041 * thick, 0.027 * thick]
    shapes = _along(points, radii, [appearance.skin] * 3)
    # The sleeve: the same limb a little thicker, up to where it ends.
    loose = [r + 0.008 * scale for r in radii]
    upper = min(2 * appearance.sleeve, 1.0)
    end = shoulder + upper * (elbow - shoulder)
    shapes += _along([shoulder, end], [loose[0], loose[0] + upper * (loose[1] - loose[0])], [appearance.shirt])
    if appearance.sleeve > 0.5:
        lower = 2 * appearance.sleeve - 1
        cuff = elbow + lower * (wrist - elbow)
        middle = elbow + 0.5 * lower * (wrist - elbow)
        shapes += _along(
            [elbow, middle, cuff], [loose[1], loose[2], 0.012 * scale + 0.03 * thick], [appearance.shirt] * 2
        )
    palm = wrist + 0.45 * (tip - wrist)
    hand_length = float(np.sqrt(np.sum((tip - wrist) ** 2)))
    shapes.append(
        Ellipsoid(palm, frame, np.array([0.019, 0.62 * hand_length, 0.038]) * [scale, 1.0, scale], appearance.skin)
    )
    fingers = tip + 0.5 * (tip - wrist) + frame @ [-side * 0.022 * scale, 0.0, 0.0]
    shapes += _along([tip, fingers], [0.021 * scale, 0.015 * scale], [appearance.skin])
    shapes += _along([wrist + 0.3 * (thumb - wrist), thumb], [0.017 * scale, 0.012 * scale], [appearance.skin])
    return shapes
