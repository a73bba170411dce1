"""Hair: a volume around the head with an opening for the face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.faces.person import Person
from tusk.data.synthetic.faces.shape import BROW_LINE, CROWN, EMPTY, Volume, bump, grid, ramp, roundness
from tusk.data.synthetic.faces.trace import Hits


@dataclass(frozen=True)
class HairStyle:
    thickness: tuple[float, float]  # least and most, over the skull
    hairline: float  # y of its edge above the middle of the forehead
    temple: float  # how fast the edge comes down towards the sides
    sideburn: float  # y where it ends before the ear
    length: float  # y where it ends at the back
    curl: float = 0.0
    covers_ears: bool = False


STYLES = {
    "receding": HairStyle((0.03, 0.05), -0.98, 0.30, 0.02, 0.62),
    "short": HairStyle((0.05, 0.14), -0.74, 0.55, 0.10, 0.62),
    "parted": HairStyle((0.10, 0.22), -0.72, 0.7, 0.10, 0.66),
    "fringe": HairStyle((0.08, 0.14), -0.42, 0.30, 0.22, 0.74),
    "curly": HairStyle((0.14, 0.34), -0.68, 0.9, 0.20, 0.85, curl=1.0),
    "tied": HairStyle((0.04, 0.08), -0.76, 0.8, 0.0, 0.66),
    "bob": HairStyle((0.09, 0.15), -0.62, 1.5, 0.95, 1.0, curl=0.1, covers_ears=True),
    "long": HairStyle((0.08, 0.16), -0.68, 1.6, 1.7, 1.8, curl=0.25, covers_ears=True),
}


def noise(rng: np.random.Generator, coarse: tuple[int, int], shape: tuple[int, int]) -> Float32Array:
    """Smooth noise in -1..1: `coarse` random values, enlarged to `shape` (rows, columns)."""
    values = Image.fromarray(rng.integers(0, 256, coarse, dtype=np.uint8))
    large = values.resize((shape[1], shape[0]), Image.Resampling.BICUBIC)
    return np.asarray(large, dtype=np.float32) * (2 / 255) - 1


def hair_volume(person: Person, style: HairStyle) -> Volume:
    least, most = style.thickness
    thickness = least + (most - least) * person.hair_volume
    # Short hair lies close at the temples and stands up at the top.
    beside = thickness if style.covers_ears or style.curl else 0.035 + 0.25 * thickness
    half_width = person.width + beside  # where it is widest
    crown = CROWN - 1.1 * thickness
    x, y = grid(-half_width - 0.1, crown - 0.15, half_width + 0.1, style.length + 0.05)
    # Combed to one side, the hair stands higher there.
    tilted = y - (0.10 * person.parting * x if person.hair_style in ("parted", "fringe") else 0)
    up = np.clip((tilted - BROW_LINE) * (1 / (crown - BROW_LINE)), 0, 1)
    square = up * up
    if style.covers_ears:
        # Falls straight, a little wider than the head, and closes in at its end.
        near_end = ramp(y, style.length - 0.5, style.length)
        wide = half_width * (1 + 0.08 * ramp(y, 0, 1)) * (1 - 0.35 * near_end * near_end)
        front = (0.74 + thickness) * (1 - 0.75 * ramp(y, -0.1, 1.1))
        behind = (0.84 + thickness) * (1 - 0.3 * ramp(y, 0.3, 1.2))
    else:
        # Closes in like the back of the head above the neck.
        down = np.clip((y - BROW_LINE) * (1 / (style.length - BROW_LINE)), 0, 1)
        down = down * down
        close = np.sqrt(np.maximum(1 - 0.6 * down - 0.4 * down * down, 0))
        wide = (half_width if style.curl else person.width + 0.012 + (beside - 0.012) * ramp(y, -0.1, -0.6)) * close
        front = (0.74 + (thickness if style.curl else thickness * ramp(y, -0.2, -0.7))) * close
        behind = (0.84 + thickness) * close
    wide = wide * np.sqrt(np.maximum(1 - square * (0.65 + 0.35 * square), 1e-6))
    rounded = roundness(x, np.maximum(wide, 1e-3))
    outside = (rounded <= 0) | (square >= 1) | (y >= style.length)
    profile = np.sqrt(np.maximum(rounded, 0)) * np.sqrt(np.maximum(1 - square, 0))
    if person.hair_style == "tied":
        behind = behind + 0.35 * bump(y, -0.35, 0.4) * bump(x, 0, 0.4)
    return Volume(
        x,
        y,
        np.where(outside, EMPTY, front * profile).astype(np.float32),
        np.where(outside, EMPTY, -behind * profile).astype(np.float32),
    )


def strands(rng: np.random.Generator, style: HairStyle, shape: tuple[int, int]) -> Float32Array:
    """Light and dark strands over the hair's height map, -1..1."""
    if style.curl > 0.5:
        return noise(rng, (22, 22), shape)
    if style.thickness[1] < 0.15 and not style.covers_ears:
        return 0.6 * noise(rng, (18, 40), shape) + 0.3 * noise(rng, (6, 14), shape)
    return 0.65 * noise(rng, (4, 44), shape) + 0.35 * noise(rng, (6, 18), shape)


def coverage(person: Person, style: HairStyle, volume: Volume, hits: Hits, rough: Float32Array) -> Float32Array:
    """How much hair there is where a ray meets the volume: 0 in the opening for the face, 1 well inside the hair."""
    x, y, z = hits.x, hits.y, hits.z
    square = x * x
    middle = style.hairline - 0.6 * person.hair_lift
    edge = middle + style.temple * square * (0.4 + 1.6 * square)
    if person.hair_style in ("parted", "long", "bob"):
        # Combed away from the parting: high where it begins, lower on the far side.
        edge = edge + person.parting * 0.14 * x - 0.14 * bump(x, 0.3 * person.parting, 0.22)
    side = np.maximum(ramp(np.abs(x), 0.60, 0.72), ramp(z, 0, -0.2)) if style.covers_ears else ramp(z, 0.42, 0.12)
    behind = ramp(z, -0.02, -0.25)
    end = style.sideburn + (style.length - style.sideburn) * behind
    edge = edge + (end - edge) * side + rough * (0.05 + 0.05 * (person.hair_style == "fringe"))
    soft = 22 if style.covers_ears else 11
    # A ray that comes in from below, where the volume is cut off, meets no hair.
    surface = volume.front.ravel().take(hits.place) - 0.12, volume.back.ravel().take(hits.place) + 0.12
    cut = (y > style.length - 0.1) & (z < surface[0]) & (z > surface[1])
    return np.where(cut, 0, np.clip((edge - y) * soft + 0.5, 0, 1)).astype(np.float32)
