"""Who somebody is: how tall and stout, and what they wear."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, fields, replace

import numpy as np

from tusk.data.synthetic.people.pose import Array, Bones, Generator, spread

SKINS = (
    (0.96, 0.80, 0.69),
    (0.90, 0.72, 0.58),
    (0.82, 0.62, 0.47),
    (0.66, 0.46, 0.33),
    (0.48, 0.32, 0.23),
    (0.35, 0.23, 0.17),
)
HAIRS = (
    (0.08, 0.07, 0.07),
    (0.16, 0.11, 0.08),
    (0.32, 0.21, 0.13),
    (0.48, 0.30, 0.14),
    (0.78, 0.62, 0.36),
    (0.58, 0.57, 0.56),
)
LEGWEAR = ("trousers", "shorts", "skirt")


@dataclass(frozen=True)
class Appearance:
    girth: float  # how stout: a factor on every thickness
    bust: bool
    skin: Array  # colours: (3,) in 0..1
    hair: Array
    shirt: Array
    lower: Array  # trousers, shorts or skirt
    shoes: Array
    sleeve: float  # share of the arm that is covered: 0.5 to the elbow, 1 to the wrist
    legwear: str
    hem: float  # share of the leg that shorts or skirt cover: 0.5 to the knee
    hair_length: float  # metres below the crown at the back; 0 is bald


def draw_bones(rng: Generator) -> Bones:
    """Somebody between about 1.55 and 1.95 m; legs, arms and shoulders vary on their own as well."""
    stature, legs, arms = spread(rng, 1.0, 0.05), spread(rng, 1.0, 0.02), spread(rng, 1.0, 0.02)
    bones = Bones(**{f.name: stature * getattr(Bones(), f.name) for f in fields(Bones)})
    return replace(
        bones,
        thigh=bones.thigh * legs,
        shank=bones.shank * legs,
        upper_arm=bones.upper_arm * arms,
        forearm=bones.forearm * arms,
        shoulder_width=bones.shoulder_width * spread(rng, 1.0, 0.05),
        hip_width=bones.hip_width * spread(rng, 1.0, 0.04),
    )


def draw_appearance(rng: Generator) -> Appearance:
    bust = bool(rng.random() < 0.5)
    legwear = LEGWEAR[int(rng.choice(3, p=(0.72, 0.16, 0.12) if bust else (0.8, 0.2, 0.0)))]
    shade = float(rng.uniform(0.92, 1.06))
    long = bool(rng.random() < (0.75 if bust else 0.08))
    bald = not bust and bool(rng.random() < 0.1)
    return Appearance(
        girth=spread(rng, 0.97 if bust else 1.03, 0.07),
        bust=bust,
        skin=np.minimum(np.array(SKINS[int(rng.integers(len(SKINS)))]) * shade, 1.0),
        hair=np.array(HAIRS[int(rng.integers(len(HAIRS)))]),
        shirt=_cloth(rng, vivid=0.6, dark=0.25),
        lower=_cloth(rng, vivid=0.35, dark=0.6),
        shoes=_cloth(rng, vivid=0.3, dark=0.6),
        sleeve=float(rng.choice([0.36, 0.46, 0.7, 0.97, 0.97])),
        legwear=legwear,
        hem=float(rng.uniform(0.36, 0.52)) if legwear == "shorts" else float(rng.uniform(0.38, 0.6)),
        hair_length=0.0 if bald else float(rng.uniform(0.28, 0.46)) if long else 0.2,
    )


def _cloth(rng: Generator, vivid: float, dark: float) -> Array:
    """A colour that clothes have: never so pale that it would be lost on white."""
    saturation = float(rng.uniform(0.35, 0.85)) if rng.random() < vivid else float(rng.uniform(0.0, 0.25))
    value = float(rng.uniform(0.15, 0.42)) if rng.random() < dark else float(rng.uniform(0.5, 0.85))
    return np.array(colorsys.hsv_to_rgb(float(rng.uniform(0, 1)), saturation, value))
