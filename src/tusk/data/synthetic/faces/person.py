"""Who is drawn: the traits of one person, and how they vary from person to person.

Lengths are in head units: a head is about 2.2 high and 1.5 wide. Its origin lies between the eyes and inside of the
skull; x is right, y down, z towards the viewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Colour = tuple[float, float, float]  # red, green, blue in 0..255

HAIR_STYLES = ("bald", "receding", "short", "parted", "fringe", "curly", "tied", "bob", "long")
BEARDS = ("none", "stubble", "moustache", "goatee", "full")
GLASSES = ("none", "thin", "bold")
COLLARS = ("round", "neck", "shirt", "jacket")

# From light to dark; neighbours are mixed, so that every tone between them occurs.
SKINS: tuple[Colour, ...] = (
    (246, 214, 194),
    (236, 194, 168),
    (222, 174, 142),
    (198, 146, 112),
    (168, 116, 84),
    (134, 88, 62),
    (100, 66, 48),
)
HAIRS: tuple[Colour, ...] = (
    (30, 26, 28),
    (52, 38, 32),
    (78, 54, 38),
    (112, 76, 46),
    (150, 106, 62),
    (200, 160, 100),
    (136, 66, 36),
    (150, 146, 144),
    (206, 202, 198),
)
EYES: tuple[Colour, ...] = ((60, 40, 28), (86, 58, 34), (110, 92, 52), (84, 110, 88), (88, 122, 156), (110, 126, 138))
FRAMES: tuple[Colour, ...] = ((34, 30, 32), (92, 60, 40), (70, 74, 86), (120, 40, 44))
SHIRTS: tuple[Colour, ...] = ((236, 238, 242), (186, 204, 226), (214, 206, 196))
LIPSTICKS: tuple[Colour, ...] = ((182, 44, 58), (200, 82, 96), (150, 40, 70), (190, 90, 80))


@dataclass(frozen=True)
class Pose:
    """Angles in radians; positive yaw turns the nose to the right of the image, pitch down, roll clockwise."""

    yaw: float
    pitch: float
    roll: float


@dataclass(frozen=True)
class Person:
    pose: Pose
    # The skull and the features on it.
    width: float  # half the width of the head
    jaw: float  # 0 square .. 1 oval
    chin: float  # y of the chin's end
    eye_spacing: float  # x of each eye's centre
    eye_size: float
    nose_y: float
    nose_width: float
    nose_height: float  # how far the tip stands out
    mouth_y: float
    mouth_width: float
    lips: float  # fullness
    # Expression.
    eye_open: float
    gaze: tuple[float, float]
    brow_lift: float
    smile: float
    mouth_open: float
    teeth: bool
    # Colours.
    skin: Colour
    blush: float
    iris: Colour
    lip: Colour
    lashes: float
    brow: float  # thickness
    # Hair and things worn.
    hair_style: str
    hair: Colour
    hair_volume: float
    hair_lift: float  # moves the hairline up and down
    parting: float
    beard: str
    glasses: str
    glasses_round: float
    glasses_colour: Colour
    collar: str
    clothes: Colour
    shirt: Colour


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """`share` of the second colour, the rest of the first."""
    (r, g, b), (red, green, blue) = first, second
    return r + (red - r) * share, g + (green - g) * share, b + (blue - b) * share


def _index(rng: np.random.Generator, weights: tuple[float, ...]) -> int:
    left = rng.random() * sum(weights)
    for i, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return i
    return len(weights) - 1


def _pick(rng: np.random.Generator, names: tuple[str, ...], weights: tuple[float, ...]) -> str:
    return names[_index(rng, weights)]


def _bell(rng: np.random.Generator, middle: float, spread: float, low: float, high: float) -> float:
    return float(min(max(middle + spread * rng.standard_normal(), low), high))


def _tint(rng: np.random.Generator, colour: Colour, spread: float) -> Colour:
    """The same colour, a little lighter or darker, warmer or cooler."""
    light, warm = rng.uniform(-spread, spread), rng.uniform(-spread, spread)
    red, green, blue = colour[0] * (1 + light + warm / 2), colour[1] * (1 + light), colour[2] * (1 + light - warm / 2)
    return min(red, 252.0), min(green, 252.0), min(blue, 252.0)


def _cloth(rng: np.random.Generator) -> Colour:
    grey = 20 + 200 * rng.beta(1, 1.6)
    red, green, blue = grey + rng.uniform(0.0, 0.8) * (rng.uniform(10, 230, 3) - grey)
    return float(red), float(green), float(blue)


def sample_person(rng: np.random.Generator) -> Person:
    """Anybody. Traits that go together in life (beard and short hair, dark skin and dark hair) do so here, loosely."""
    tone = rng.beta(1.1, 1.5) * (len(SKINS) - 1.001)
    skin = _tint(rng, mix(SKINS[int(tone)], SKINS[int(tone) + 1], tone % 1), 0.04)
    masculine = bool(rng.random() < 0.5)
    if masculine:
        hair_style = _pick(rng, HAIR_STYLES, (1.2, 1.6, 4.5, 3.5, 0.7, 1.2, 0.2, 0.2, 0.5))
        beard = _pick(rng, BEARDS, (5, 2.5, 0.7, 0.9, 1.6))
    else:
        hair_style = _pick(rng, HAIR_STYLES, (0.1, 0.1, 0.7, 0.7, 1, 1.3, 2, 2.6, 4.5))
        beard = "none"
    # Fair hair and light eyes grow rarer as the skin grows darker.
    fair = max(0.0, 1 - tone / 3)
    hair_weights = (2.5, 2.5, 1.5, fair * 1.5, fair * 1.5, fair * 2, fair * 0.8, 0.8, 0.5)
    hair = _tint(rng, HAIRS[_index(rng, hair_weights)], 0.12)
    iris = EYES[_index(rng, (3, 2, fair, fair, fair * 1.5, fair))]
    natural_lip = mix(skin, (172, 62, 66), 0.45)
    painted = not masculine and rng.random() < 0.45
    lip = mix(natural_lip, LIPSTICKS[int(rng.integers(len(LIPSTICKS)))], rng.uniform(0.5, 1.0) if painted else 0.0)
    smile = _bell(rng, 0.5, 0.42, -0.3, 1.15)
    laughing = rng.random() < smile
    mouth_open = rng.uniform(0.03, 0.10) if laughing else _bell(rng, -0.02, 0.06, 0, 0.2)
    return Person(
        pose=Pose(
            yaw=_bell(rng, 0, 0.29, -0.70, 0.70),
            pitch=_bell(rng, 0, 0.13, -0.34, 0.34),
            roll=_bell(rng, 0, 0.14, -0.50, 0.50),
        ),
        width=_bell(rng, 0.76 if masculine else 0.735, 0.025, 0.67, 0.83),
        jaw=float(rng.uniform(0.45, 0.9) if masculine else rng.uniform(0.75, 1.15)),
        chin=_bell(rng, 1.10, 0.035, 1.02, 1.18) + 0.5 * mouth_open,
        eye_spacing=_bell(rng, 0.335, 0.014, 0.30, 0.37),
        eye_size=_bell(rng, 0.142 if masculine else 0.152, 0.008, 0.122, 0.172),
        nose_y=_bell(rng, 0.40, 0.02, 0.35, 0.45),
        nose_width=_bell(rng, 0.155, 0.022, 0.11, 0.21),
        nose_height=_bell(rng, 0.21, 0.03, 0.14, 0.29),
        mouth_y=_bell(rng, 0.69, 0.02, 0.65, 0.74),
        mouth_width=_bell(rng, 0.25, 0.022, 0.20, 0.30),
        lips=_bell(rng, 0.062 if masculine else 0.078, 0.014, 0.04, 0.105),
        eye_open=_bell(rng, 0.50, 0.11, 0.14, 0.72),
        gaze=(_bell(rng, 0, 0.25, -0.6, 0.6), _bell(rng, 0, 0.12, -0.3, 0.3)),
        brow_lift=_bell(rng, 0, 0.03, -0.05, 0.09),
        smile=smile,
        mouth_open=mouth_open,
        teeth=bool(rng.random() < (0.95 if laughing else 0.6)),
        skin=skin,
        blush=float(rng.uniform(0, 0.22)),
        iris=_tint(rng, iris, 0.1),
        lip=lip,
        lashes=float(rng.uniform(0.2, 0.6) if masculine else rng.uniform(0.6, 1.0)),
        brow=_bell(rng, 0.034 if masculine else 0.024, 0.006, 0.014, 0.05),
        hair_style=hair_style,
        hair=hair,
        hair_volume=float(rng.uniform(0, 1)),
        hair_lift=_bell(rng, 0, 0.05, -0.1, 0.1),
        parting=float(rng.uniform(-1, 1)),
        beard=beard,
        glasses=_pick(rng, GLASSES, (7.5, 1.5, 1.0)),
        glasses_round=float(rng.uniform(2, 4)),
        glasses_colour=_tint(rng, FRAMES[int(rng.integers(len(FRAMES)))], 0.1),
        collar=_pick(rng, COLLARS, (3, 2, 2, 2) if masculine else (3, 3, 1, 1)),
        clothes=_cloth(rng),
        shirt=_tint(rng, SHIRTS[int(rng.integers(len(SHIRTS)))], 0.05),
    )
