"""Placement in training and frames in use: points go there and back, nothing is lost, and the scale is the same."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tusk.config import DataConfig
from tusk.data.folder import FolderDataset
from tusk.data.framing import Framing, Whole, fit_picture, frame_for, place, place_tiles
from tusk.data.images import Picture

sides = st.integers(1, 400)
SIDES = st.integers(1, 6000)


@given(sides, sides, st.integers(1, 130), st.sampled_from(get_args(Whole)), st.integers(0, 99))
def test_placement_there_and_back(width: int, height: int, size: int, fit: Whole, seed: int) -> None:
    placement = place(width, height, size, fit, np.random.default_rng(seed))
    points = np.random.default_rng(seed).uniform(-1, size, (5, 2))
    assert np.allclose(placement.to_network(placement.to_original(points)), points)
    # The corner of the first filled pixel is the corner of the rectangle taken, and so is the last.
    first = np.array([placement.column, placement.row]) - 0.5
    last = first + np.array([placement.columns, placement.rows])
    assert np.allclose(placement.to_original(first) + 0.5, [placement.left, placement.top])
    taken = [placement.left + placement.width, placement.top + placement.height]
    assert np.allclose(placement.to_original(last) + 0.5, taken)
    assert taken[0] <= width and taken[1] <= height and min(placement.left, placement.top) >= 0
    if fit in ("letterbox", "pad"):
        assert (placement.width, placement.height) == (width, height)
        if fit == "pad" and max(width, height) <= size:
            assert (placement.columns, placement.rows) == (width, height)
        else:
            assert max(placement.columns, placement.rows) == size
        assert placement.column + placement.columns <= size and placement.row + placement.rows <= size
    else:
        assert placement.width == placement.height == min(width, height)
        assert (placement.columns, placement.rows) == (size, size)


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 200), st.integers(20, 200), st.sampled_from(get_args(Whole)), st.integers(0, 10**6))
def test_a_drawn_dot_is_found_again(width: int, height: int, fit: Whole, seed: int) -> None:
    rng = np.random.default_rng(seed)
    placement = place(width, height, 40, fit, rng)
    x = placement.left + rng.uniform(0.2, 0.8) * placement.width
    y = placement.top + rng.uniform(0.2, 0.8) * placement.height
    rows, columns = np.mgrid[0:height, 0:width]
    spread = max(2.0, 1.5 * max(placement.scale))
    dot = 250 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * spread**2))
    pixels = np.repeat(np.rint(dot).astype(np.uint8)[:, :, None], 3, axis=2)
    (drawn,) = Framing(40, grey=True).render(Picture(pixels, width, height), [placement])
    image = drawn[:, :, 0].astype(float)
    row, column = np.unravel_index(image.argmax(), image.shape)
    assert np.abs(placement.to_original([column, row]) - [x, y]).max() <= 0.75 * max(placement.scale) + 0.5


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 250), st.integers(1, 250), st.sampled_from([8, 37, 80]), st.sampled_from([0.3, 1.0, 1.7]))
def test_tiles_cover_all_of_a_picture_and_nothing_else(width: int, height: int, size: int, scale: float) -> None:
    tiles = place_tiles(width, height, size, scale)
    covered = np.zeros((max(1, round(height * scale)), max(1, round(width * scale))), np.int64)
    for tile in tiles:
        x, y = tile.to_original([tile.column, tile.row])  # where the picture begins in it
        left, top = (
            round((at + 0.5) * side / whole - 0.5)
            for at, side, whole in zip((x, y), covered.shape[::-1], (width, height), strict=True)
        )
        assert 0 <= tile.column <= tile.column + tile.columns <= size
        assert 0 <= tile.row <= tile.row + tile.rows <= size
        part = covered[top : top + tile.rows, left : left + tile.columns]
        assert part.shape == (tile.rows, tile.columns)
        part += 1
    assert covered.min() == 1
    assert covered.max() <= 4  # no more than neighbours overlap
    fewest = -(-covered.shape[0] // size) * -(-covered.shape[1] // size)
    assert len(tiles) == fewest


@given(st.integers(20, 200), st.integers(20, 200))
def test_tiles_at_the_pictures_own_scale_are_its_own_pixels(width: int, height: int) -> None:
    pixels = np.random.default_rng(width * height).integers(0, 256, (height, width, 3), dtype=np.uint8)
    tiles = place_tiles(width, height, 16)
    for tile, image in zip(tiles, Framing(16).render(Picture(pixels, width, height), tiles), strict=True):
        left, top = int(tile.left), int(tile.top)
        assert (left, top) == (tile.left, tile.top)
        np.testing.assert_array_equal(image, pixels[top : top + 16, left : left + 16])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.sampled_from([8, 13, 32]), st.sampled_from([0.3, 0.77, 1.7, 3.1]))
def test_tiles_of_any_scale_can_be_cut(width: int, height: int, size: int, scale: float) -> None:
    """No edge may lie beyond the picture's, be it by a rounding error: Pillow refuses that."""
    framing = Framing(size, "tiles", scale)
    picture = Picture(np.full((height, width, 3), 200, np.uint8), width, height)
    places = framing.places(width, height, np.random.default_rng(0))
    for tile, image in zip(places, framing.render(picture, places), strict=True):
        assert (image == 200).sum() == 3 * tile.columns * tile.rows and image.shape == (size, size, 3)


# --- in use ---


@given(SIDES, SIDES, st.sampled_from(get_args(Whole)), st.sampled_from([8, 64, 130]))
def test_nothing_is_lost_in_use(width: int, height: int, fit: Whole, size: int) -> None:
    frame = frame_for(width, height, DataConfig(size=size, fit=fit, dataset="tetrominoes"), 8)
    placement = frame.placement
    assert (placement.left, placement.top, placement.width, placement.height) == (0, 0, width, height)
    assert placement.column >= 0 and placement.column + placement.columns <= frame.width
    assert placement.row >= 0 and placement.row + placement.rows <= frame.height
    assert min(frame.width, frame.height) >= 8 and max(frame.width, frame.height) <= 4 * size
    corners = np.array([[-0.5, -0.5], [width - 0.5, height - 0.5], [width / 3, height / 7]])
    np.testing.assert_allclose(placement.to_original(placement.to_network(corners)), corners, atol=1e-6)


@given(sides, sides, st.sampled_from(get_args(Whole)), st.sampled_from([8, 64, 130]), st.integers(0, 9))
def test_what_training_takes_lies_within_the_frame_at_its_scale(
    width: int, height: int, fit: Whole, size: int, seed: int
) -> None:
    """The same placement, or, for crops out of longer pictures, the same scale but for whole pixels of the frame."""
    framing = Framing(size, fit)
    (trained,) = framing.places(width, height, np.random.default_rng(seed))
    used = framing.frame(width, height, 1)
    if fit in ("letterbox", "pad") or width == height:
        assert used.placement == trained and (used.width, used.height) == (size, size)
    elif max(width, height) <= 4 * min(width, height):
        np.testing.assert_allclose(used.placement.scale, trained.scale, rtol=0.51 / size)
        corners = trained.to_original([[-0.5, -0.5], [size - 0.5, size - 0.5]])
        inside = used.placement.to_network(corners)
        assert (inside >= -0.5 - 1e-6).all() and (inside <= np.array([used.width, used.height]) - 0.5 + 1e-6).all()
        np.testing.assert_allclose(inside[1] - inside[0], size, atol=0.51)


def test_pad_keeps_small_pictures_as_they_are_and_letterboxes_large_ones(tmp_path) -> None:
    small = Picture(np.full((35, 31, 3), 200, np.uint8), 31, 35)
    Image.fromarray(small.pixels).save(tmp_path / "a.png")
    for dataset in ("tetrominoes", "folder"):
        padded = fit_picture(small, "a", DataConfig(size=40, fit="pad", dataset=dataset), 8)
        assert padded.pixels.shape == (40, 40, 3)
        assert (padded.pixels[2:37, 4:35] == 200).all() and padded.pixels.sum() == small.pixels.sum()
    trained = FolderDataset(tmp_path, size=40, fit="pad", cache_dir=tmp_path / "cache").image(0)
    np.testing.assert_array_equal(trained, padded.pixels)
    large = Framing(20, "pad").frame(31, 35, 8).placement
    assert (large.columns, large.rows) == (18, 20)


@given(SIDES, SIDES, st.sampled_from([0.25, 1.0, 3.0]))
def test_tiles_keep_the_pictures_scale_and_are_never_cut_short(width: int, height: int, scale: float) -> None:
    frame = frame_for(width, height, DataConfig(size=64, fit="tiles", scale=scale), 8)
    placement = frame.placement
    assert (placement.left, placement.top, placement.width, placement.height) == (0, 0, width, height)
    assert frame.width == max(64, placement.columns) and frame.height == max(64, placement.rows)
    assert abs(placement.columns - width * scale) <= 1 and abs(placement.rows - height * scale) <= 1


@pytest.mark.parametrize(("contrast", "grey"), [("full", False), ("own", True), ("full", True)])
def test_contrast_and_grey_are_those_of_training(tmp_path, contrast, grey) -> None:
    pixels = np.random.default_rng(0).integers(40, 90, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    trained = FolderDataset(tmp_path, size=32, contrast=contrast, grey=grey, cache_dir=tmp_path / "cache").image(0)
    used = fit_picture(Picture(pixels, 32, 32), "a", DataConfig(size=32, contrast=contrast, grey=grey), 8).pixels
    np.testing.assert_array_equal(used, trained)
    assert (used == used[:, :, :1]).all() == grey
    assert (used.max() > 200) == (contrast == "full")
