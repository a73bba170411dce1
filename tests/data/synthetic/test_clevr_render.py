"""Masks and pictures of single scenes against geometry and against each other."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import ndimage

from tusk.data.synthetic.clevr.render import Camera, centres, draw, draw_mask
from tusk.data.synthetic.clevr.scene import COLORS, CUBE, CYLINDER, METAL, RUBBER, SPHERE, Scene, Thing, draw_scene

LARGE = 1


def thing(shape: int, x: float = 0.0, y: float = 0.0, **changes: float) -> Thing:
    plain = Thing(shape=shape, color=1, size=LARGE, material=RUBBER, x=x, y=y, rotation=0.4)
    return dataclasses.replace(plain, **changes)


@pytest.mark.parametrize(("x", "y", "size"), [(0.0, 0.0, 1), (1.5, -2.0, 0), (-2.0, 1.0, 1), (0.0, 0.0, 0)])
@pytest.mark.parametrize("pixels", [64, 128])
def test_mask_of_a_lone_sphere_is_its_analytic_outline(x: float, y: float, size: int, pixels: int) -> None:
    scene = Scene((thing(SPHERE, x, y, size=size),))
    mask = draw_mask(scene, pixels)
    # A ray meets a sphere if it is within asin(r / d) of the direction to its centre: an ellipse in the picture.
    camera = np.array(scene.camera)
    ahead = -camera / np.linalg.norm(camera)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    down = np.cross(ahead, right)
    focal, scale = 234.0625 * pixels / 128, pixels / 128
    rows, columns = np.mgrid[:pixels, :pixels]
    across, below = (columns + 0.5 - 64 * scale) / focal, (rows + 0.5 - 61 * scale) / focal
    rays = ahead + across[..., None] * right + below[..., None] * down
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    centre = np.array(scene.things[0].centre) - camera
    distance = np.linalg.norm(centre)
    angle = np.arccos(np.clip(rays @ (centre / distance), -1, 1))
    outside = (angle - math.asin(scene.things[0].radius / distance)) * focal  # in pixels
    assert (mask[outside < -0.05] == 1).all()
    assert (mask[outside > 0.05] == 0).all()
    assert mask.any()


def test_projection_agrees_with_rays() -> None:
    camera = Camera.of((7.4, -6.6, 5.2), 128)
    x, y = (np.array(values, dtype=np.float32) for values in ([0.0, 63.5, 101.25], [3.0, 60.5, 127.0]))
    for distance in (3.0, 11.0):
        there = camera.project(camera.place + np.float32(distance) * camera.rays(x, y))
        np.testing.assert_allclose(there, np.stack([x, y], axis=1), atol=2e-3)
    origin = camera.project(np.zeros((3, 1), dtype=np.float32))
    np.testing.assert_allclose(origin, [[63.5, 60.5]], atol=1e-3)  # the camera looks at the origin


def test_centres_of_lone_things_are_in_the_middle_of_their_masks() -> None:
    for shape in (CUBE, SPHERE, CYLINDER):
        scene = Scene((thing(shape, 0.5, -0.5),))
        rows, columns = np.nonzero(draw_mask(scene, 128))
        middle = np.array([(columns.min() + columns.max()) / 2, (rows.min() + rows.max()) / 2])
        np.testing.assert_allclose(centres(scene, 128)[0], middle, atol=2.0)


def test_nearer_things_hide_farther_ones() -> None:
    toward = np.array(Scene(()).camera[:2]) / math.hypot(*Scene(()).camera[:2])
    behind, before = -1.2 * toward, 1.2 * toward
    pair = (thing(CUBE, *behind), thing(SPHERE, *before))
    mask, swapped = draw_mask(Scene(pair), 128), draw_mask(Scene(pair[::-1]), 128)
    alone = draw_mask(Scene(pair[1:]), 128)
    np.testing.assert_array_equal(mask == 2, alone == 1)
    np.testing.assert_array_equal(swapped, np.array([0, 2, 1], dtype=np.uint8)[mask])
    assert (mask == 1).sum() < (draw_mask(Scene(pair[:1]), 128) == 1).sum()


def test_culling_changes_no_byte() -> None:
    for number in range(3):
        scene = draw_scene(np.random.default_rng((5, number)), 5)
        np.testing.assert_array_equal(draw(scene, 64), draw(scene, 64, cull=False))


def changed(scene: Scene, number: int, color: int) -> np.ndarray:
    """Where the picture changes when one thing is given another colour."""
    things = list(scene.things)
    things[number] = dataclasses.replace(things[number], color=color)
    before, after = draw(scene, 128), draw(dataclasses.replace(scene, things=tuple(things)), 128)
    return (before != after).any(axis=2)


def grown(region: np.ndarray) -> np.ndarray:
    """Two pixels wider: an edge pixel is a mixture, and the film is soft."""
    return ndimage.binary_dilation(region, structure=np.ones((3, 3)), iterations=2)


def test_a_colour_changes_only_its_own_pixels_and_reflections_in_metal() -> None:
    rubber = (thing(CUBE, -1.5, 1.0), thing(SPHERE, 1.2, -0.6), thing(CYLINDER, -0.5, -1.6))
    scene = Scene(rubber)
    mask = draw_mask(scene, 128)
    for number in range(3):
        where = changed(scene, number, COLORS.index("cyan"))
        inside = ndimage.binary_erosion(mask == number + 1)
        assert inside.sum() > 100
        assert where[inside].all()
        assert not where[~grown(mask == number + 1)].any()
    shiny = dataclasses.replace(
        scene, things=(*rubber[:1], dataclasses.replace(rubber[1], material=METAL), *rubber[2:])
    )
    where = changed(shiny, 2, COLORS.index("cyan"))
    assert where[mask == 2].any()
    assert not where[~grown((mask == 3) | (mask == 2))].any()


def test_things_only_darken_the_ground() -> None:
    scene = Scene((thing(CYLINDER), thing(CUBE, 1.8, -1.2, size=0)))
    empty, filled = draw(Scene(()), 128).astype(int), draw(scene, 128).astype(int)
    ground = ~grown(draw_mask(scene, 128) > 0)
    assert (filled[ground] <= empty[ground]).all()
    assert (filled[ground] < empty[ground] - 15).any()
    assert (filled[ground] == empty[ground]).all(axis=1).mean() > 0.4
    # A vignette: the far ground is darker than the near one, which is a light grey.
    assert empty[:8].mean() + 20 < empty[-8:].mean()
    assert np.ptp(empty.mean(axis=(0, 1))) < 6


def test_metal_shines_and_rubber_does_not() -> None:
    matte = draw(Scene((thing(SPHERE),)), 128)
    shiny = draw(Scene((thing(SPHERE, material=METAL),)), 128)
    inside = ndimage.binary_erosion(draw_mask(Scene((thing(SPHERE),)), 128) == 1, iterations=2)
    assert shiny[inside].max() == 255
    assert matte[inside].max() < 220
    assert shiny[inside, 0].astype(float).std() > 2 * matte[inside, 0].astype(float).std()  # a red sphere
