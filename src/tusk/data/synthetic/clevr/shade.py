"""How points of a CLEVR scene look: matte ground, rubber and metal under the scene's lamps, in linear light.

The materials follow CLEVR's. Metal is a coloured reflection in two lobes, one nearly a mirror and one rougher. Rubber
is a matte colour under a clear coat that shows at grazing angles. Light that bounces is cut short: rubber receives
light from open ground below it, metal reflects once, and metal in metal reflects the surroundings alone.
"""

from __future__ import annotations

import math

import numpy as np

from tusk.data.dataset import Float32Array
from tusk.data.synthetic.clevr.light import GROUND_ALBEDO, SKY, Lamp, backdrop, ground_normals, light_share
from tusk.data.synthetic.clevr.shapes import BoolArray, dot, unit
from tusk.data.synthetic.clevr.trace import Hits, Stage, trace

# Linear light reflected by each colour, in the order of `clevr_scene.COLORS`, times 255.
_COLOURS = (
    (87, 87, 87),
    (173, 35, 35),
    (42, 75, 215),
    (29, 105, 20),
    (129, 74, 25),
    (129, 38, 192),
    (41, 208, 208),
    (255, 238, 51),
)
PALETTE: Float32Array = np.array(_COLOURS, dtype=np.float32) / np.float32(255)

# Metal's lobes: their share, and how far normals are tilted, as on brushed metal less around the thing's vertical axis
# than along it. The widths were fitted to rendered metal.
SHARP, SHARP_AROUND, SHARP_ALONG = 0.6, 0.03, 0.053
ROUGH, ROUGH_AROUND, ROUGH_ALONG = 0.4, 0.21, 0.373
COAT, COAT_INDEX, COAT_ROUGHNESS = 0.8, 1.2, 0.35  # rubber's coat: what it reflects, its refractive index
# Fitted to rendered rubber and ground: the share of the ground's light that reaches a thing from below, the light from
# above that comes from no lamp, and the light that ground receives from its surroundings.
BOUNCE, HAZE, GROUND_GLOW = 0.8, 0.035, 0.2

# Tilts that stand for a whole lobe, with their weights: the rules of Gauss and Hermite for exp(-x * x), twice.
_PAIR = ((-math.sqrt(0.5), 0.5), (math.sqrt(0.5), 0.5))
_TRIPLE = ((-math.sqrt(1.5), 1 / 6), (0.0, 2 / 3), (math.sqrt(1.5), 1 / 6))
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


def shade(stage: Stage, hits: Hits, *, mirrored: bool = False) -> Float32Array:
    """Linear light (3, n) that comes from the hits; `mirrored` for what shows in a reflection (cheaper)."""
    things = np.flatnonzero(hits.owners >= 0)
    on_things = hits.take(things)
    is_metal = stage.metal[on_things.owners]
    matte = np.zeros_like(hits.points)
    gloss = np.zeros_like(on_things.points)
    for lamp in stage.mirror_lamps if mirrored else stage.lamps:
        directions, strength = lamp.at(hits.points)
        facing = dot(directions, hits.normals)
        lit = np.flatnonzero((facing > 0) & hits.visible)
        received = np.zeros_like(strength)
        shares = light_share(lamp, hits.points[:, lit], hits.owners[lit], stage.bodies, cull=stage.cull)
        received[lit] = strength[lit] * shares
        matte += lamp.colour * (received * np.maximum(facing, _ZERO))
        if things.size:
            highlight = _highlight(stage, on_things, is_metal, lamp, directions[:, things], facing[things])
            gloss += lamp.colour * (received[things] * highlight)
    ground = (matte + np.float32(GROUND_GLOW)) * np.float32(GROUND_ALBEDO / math.pi)
    result = np.where(hits.visible, ground, np.float32(SKY))
    colours = np.ascontiguousarray(stage.colours[on_things.owners].T)
    rubber, metal = np.flatnonzero(~is_metal), np.flatnonzero(is_metal)
    if rubber.size:
        own = things[rubber]
        result[:, own] = _rubber(stage, hits.take(own), colours[:, rubber], matte[:, own], gloss[:, rubber])
    if metal.size:
        own = things[metal]
        image = _mirror_image(stage, hits.take(own), mirrored=mirrored)
        result[:, own] = colours[:, metal] * (image + gloss[:, metal])
    return result


def _rubber(stage: Stage, hits: Hits, colours: Float32Array, matte: Float32Array, gloss: Float32Array) -> Float32Array:
    below = hits.points * np.array([[1], [1], [0]], dtype=np.float32)
    ground = _open_ground(stage, below, ground_normals(below))
    # A level ground of even brightness fills (1 - n_z) / 2 of what a tilted surface sees, weighted by the cosine.
    bounced = np.float32(BOUNCE * math.pi / 2) * (_ONE - hits.normals[2]) * ground
    bounced += np.float32(HAZE * math.pi / 2) * (_ONE + hits.normals[2])
    body = colours * (matte + bounced) * np.float32(1 / math.pi)
    facing = np.maximum(-dot(hits.views, hits.normals), np.float32(1e-3))
    coat = _fresnel(facing, COAT_INDEX)
    upward = hits.views[2] + 2 * facing * hits.normals[2]
    # The coat is rough: around the horizon it reflects some ground and some sky.
    on_ground = np.clip(np.float32(0.6) - upward, _ZERO, _ONE)
    around = ground * on_ground + np.float32(SKY) * (_ONE - on_ground)
    coated: Float32Array = body * (_ONE - coat) + np.float32(COAT) * coat * (gloss + around)
    return coated


def _mirror_image(stage: Stage, hits: Hits, *, mirrored: bool) -> Float32Array:
    """What metal reflects, apart from the lamps."""
    if mirrored:
        return _bare(stage, hits.points, _reflect(hits.views, hits.normals))
    around, along = _brushing(stage, hits)
    image = np.zeros_like(hits.points)
    for share, rule, spread, rise in (
        (SHARP, _PAIR, SHARP_AROUND, SHARP_ALONG),
        (ROUGH, _TRIPLE, ROUGH_AROUND, ROUGH_ALONG),
    ):
        normals, weights = [], []
        for aside, first in rule:
            for ahead, second in rule:
                tilt = np.float32(aside * spread) * around + np.float32(ahead * rise) * along
                normals.append(unit(hits.normals + tilt))
                weights.append(np.float32(share * first * second))
        # All tilts in one go: many short calls would cost more than the work in them.
        rays = _reflect(np.tile(hits.views, (1, len(normals))), np.concatenate(normals, axis=1))
        starts = np.tile(hits.points, (1, len(normals)))
        if share == SHARP:
            light = shade(stage, trace(stage, starts, rays, np.tile(hits.owners, len(normals))), mirrored=True)
        else:
            light = _bare(stage, starts, rays)
        for weight, part in zip(weights, np.split(light, len(weights), axis=1), strict=True):
            image += weight * part
    return image


def _reflect(views: Float32Array, normals: Float32Array) -> Float32Array:
    return unit(views - 2 * dot(views, normals) * normals)


def _brushing(stage: Stage, hits: Hits) -> tuple[Float32Array, Float32Array]:
    """Unit tangents (3, n) around the vertical axis of each hit's thing, and along it."""
    axes = np.concatenate([body.centre for body in stage.bodies], axis=1)
    x, y, _ = hits.points - axes[:, hits.owners]
    first, second, third = hits.normals
    # Around is (-y, x, 0) made perpendicular to the normal; on the axis itself any direction will do.
    slip = second * x - first * y
    around = unit(np.stack([np.float32(1e-6) - y - slip * first, x - slip * second, -slip * third]))
    along = [second * around[2] - third * around[1], third * around[0] - first * around[2]]
    return around, np.stack([*along, first * around[1] - second * around[0]])


def _bare(stage: Stage, starts: Float32Array, rays: Float32Array) -> Float32Array:
    """What rays would meet if there were nothing but ground and wall, without shadows."""
    around = backdrop(starts, rays)
    return np.where(around.visible, _open_ground(stage, around.points, around.normals), np.float32(SKY))


def _open_ground(stage: Stage, points: Float32Array, normals: Float32Array) -> Float32Array:
    """Light from ground that nothing shades."""
    received = np.full_like(points, GROUND_GLOW)
    for lamp in stage.lamps:
        directions, strength = lamp.at(points)
        received += lamp.colour * (strength * np.maximum(dot(directions, normals), _ZERO))
    return received * np.float32(GROUND_ALBEDO / math.pi)


def _fresnel(facing: Float32Array, index: float) -> Float32Array:
    """Share of unpolarised light that a smooth surface of this refractive index reflects."""
    inner = np.sqrt(np.float32(index * index - 1) + facing * facing)
    across = (inner - facing) / (inner + facing)
    along = (facing * inner - _ONE + facing * facing) / (facing * inner + _ONE - facing * facing)
    share: Float32Array = np.float32(0.5) * across * across * (_ONE + along * along)
    return share


def _highlight(
    stage: Stage, hits: Hits, is_metal: BoolArray, lamp: Lamp, directions: Float32Array, facing: Float32Array
) -> Float32Array:
    """How much of a lamp's light each point sends to the viewer as a highlight, before colour."""
    lit = np.maximum(facing, _ZERO)
    turned = np.maximum(-dot(hits.views, hits.normals), np.float32(0.05))
    half = unit(directions - hits.views)
    peak = np.minimum(np.maximum(dot(half, hits.normals), _ZERO), _ONE)
    square = peak * peak
    level = np.maximum(-dot(half, hits.views), np.float32(0.05))
    # A lobe is widened by the size of the lamp and by how much the surface bends within one pixel.
    offset, from_eye = lamp.place - hits.points, hits.points - stage.eye
    bent = hits.bends * np.float32(stage.pixel) / turned
    wide = np.float32(0.1 * lamp.half**2) / dot(offset, offset) + np.float32(0.25) * bent * bent * dot(
        from_eye, from_eye
    )
    around, along = _brushing(stage, hits)
    aside, ahead = dot(half, around), dot(half, along)
    metal = np.zeros_like(lit)
    for share, spread, rise in ((SHARP, SHARP_AROUND, SHARP_ALONG), (ROUGH, ROUGH_AROUND, ROUGH_ALONG)):
        wide_around, wide_along = wide + np.float32(spread**2), wide + np.float32(rise**2)
        fall = aside * aside / wide_around + ahead * ahead / wide_along
        # (1 - x / 16)^16 stands for exp(-x): products are the same on every machine.
        lobe = np.maximum(_ONE - fall * (np.float32(1.5) - np.float32(0.5) * square) / 16, _ZERO)
        for _ in range(4):
            lobe = lobe * lobe
        metal += np.float32(share / (4 * math.pi)) * lobe / np.sqrt(wide_around * wide_along)
    metal *= lit / (level * np.maximum(lit, turned))
    # Rubber's coat: a broad lobe, of the form called GGX.
    alpha = np.float32(COAT_ROUGHNESS**2)
    dip = square * (alpha - _ONE) + _ONE
    coat = alpha / (np.float32(math.pi) * dip * dip) * lit / (4 * np.maximum(lit, turned))
    return np.where(is_metal, metal, coat)
