"""Large pictures tile by tile: nothing between two tiles is lost, and nothing is found twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detection.bright import blob, bright_model, detect
from tusk.config import DataConfig
from tusk.data.framing import fit_picture
from tusk.data.images import Picture
from tusk.detection.detections import Detections
from tusk.detection.tiling import Span, cut_tiles, in_original, join


def found(points, gain=None, score=None, size=40, **more):
    """Detections with these points; everything else is what it has to be."""
    xy = np.array(points, np.float64).reshape(-1, 2)
    number = len(xy)
    return Detections(
        source="a",
        width=size,
        height=size,
        xy=xy,
        type=np.arange(number),
        score=np.array(score if score is not None else [0.5] * number, np.float64),
        gain=np.array(gain if gain is not None else [1.0] * number, np.float64),
        probability=np.ones(number),
        descriptor=np.ones((number, 2)),
        instance=np.arange(number),
        **more,
    )


@given(st.integers(40, 500), st.integers(40, 500), st.sampled_from([16, 33, 40]))
def test_every_pixel_is_one_tiles_own_and_lies_well_inside_it(height, width, size):
    tiles = cut_tiles(height, width, (size, size))
    owners = np.zeros((height, width), np.int64)
    for tile in tiles:
        owners[slice(*tile.down.own), slice(*tile.across.own)] += 1
        for span, side in ((tile.across, width), (tile.down, height)):
            assert 0 <= span.start <= side - size
            first, last = span.own[0] - span.start, span.start + size - span.own[1]
            # What is its own is a quarter of a square away from its edge, unless there is nothing beyond that.
            assert span.start == 0 or first >= size // 4 - 1
            assert span.start == side - size or last >= size // 4 - 1
    assert (owners == 1).all()


def test_a_picture_of_one_square():
    (tile,) = cut_tiles(40, 40, (40, 40))
    assert tile.across == tile.down == Span(0, (0, 40))


def test_joined_in_the_pictures_pixels_best_score_first():
    tiles = cut_tiles(40, 80, (40, 40))
    found_in_tiles = [found([], size=40) for _ in tiles]
    found_in_tiles[0] = found([(5, 6), (9, 30)], score=[0.2, 0.9])
    found_in_tiles[-1] = found([(35, 3)], score=[0.5])
    joined = join(found_in_tiles, tiles, 40, 80, apart=6, most=10)
    assert (joined.width, joined.height) == (80, 40)
    np.testing.assert_array_equal(joined.xy, [(9, 30), (75, 3), (5, 6)])
    np.testing.assert_array_equal(joined.type, [1, 0, 0])
    np.testing.assert_array_equal(joined.instance, [0, 1, 2])


def test_what_two_squares_see_is_one_thing_and_no_one_leaves_it_to_the_other():
    tiles = cut_tiles(40, 60, (40, 40))
    assert [tile.across.own for tile in tiles] == [(0, 30), (30, 60)]
    # At the border: each sees it a little on the other's side, and both take it.
    found_in_tiles = [found([(30.3, 10)], gain=[1.0]), found([(29.2 - 20, 10.2)], gain=[2.0])]
    joined = join(found_in_tiles, tiles, 40, 60, apart=6, most=10)
    np.testing.assert_allclose(joined.xy, [(29.2, 10.2)])
    # Far in the other's part it is the other's alone, even if that has not found it.
    found_in_tiles = [found([(38, 10)]), found([])]
    assert len(join(found_in_tiles, tiles, 40, 60, apart=6, most=10)) == 0


def test_the_largest_gains_stay():
    tiles = cut_tiles(40, 40, (40, 40))
    found_in_tile = found([(5, 5), (20, 20), (35, 35)], gain=[1.0, 3.0, 2.0], score=[0.9, 0.1, 0.5])
    joined = join([found_in_tile], tiles, 40, 40, apart=6, most=2)
    np.testing.assert_array_equal(joined.xy, [(35, 35), (20, 20)])


def test_masks_are_cut_at_own_parts_and_name_the_joined_things():
    """A bar over both squares, whose point the second owns; each square has numbers of its own."""
    tiles = cut_tiles(40, 60, (40, 40))
    first, second = np.zeros((40, 40), np.uint16), np.zeros((40, 40), np.uint16)
    first[10:20, 22:40] = 2  # its second point
    first[0:4, 0:4] = 1
    second[10:20, 2:20] = 1
    found_in_tiles = [
        found([(1.5, 1.5), (33, 15)], gain=[1.0, 1.0], score=[0.1, 0.1], mask_map=first),
        found([(13, 15)], score=[0.9], mask_map=second),
    ]
    joined = join(found_in_tiles, tiles, 40, 60, apart=6, most=10)
    assert len(joined) == 2 and joined.mask_map is not None
    expected = np.zeros((40, 60), np.uint16)
    expected[10:20, 22:40] = 1
    expected[0:4, 0:4] = 2
    np.testing.assert_array_equal(joined.mask_map, expected)
    # A thing that did not stay has no pixels.
    np.testing.assert_array_equal(join(found_in_tiles, tiles, 40, 60, apart=6, most=1).mask_map > 1, False)


def test_masks_come_back_to_the_pictures_own_pixels():
    data = DataConfig(size=40, fit="tiles", scale=0.5)
    picture = fit_picture(Picture(np.zeros((60, 120, 3), np.uint8), 120, 60), "a", data, 8)
    assert (picture.frame.height, picture.frame.width, picture.frame.placement.row) == (40, 60, 5)
    mask = np.zeros((40, 60), np.uint16)
    mask[5:15, 0:30] = 1  # the picture's upper left, below the bar
    mask[0:5, 30:] = 2  # in the bar
    there = replace(found([(10, 10), (40, 2)], mask_map=mask), width=60, height=40)
    own = in_original(there, picture)
    assert (own.width, own.height, len(own)) == (120, 60, 1)
    np.testing.assert_allclose(own.xy, [(20.5, 10.5)])
    expected = np.zeros((60, 120), np.uint16)
    expected[:20, :60] = 1
    np.testing.assert_array_equal(own.mask_map, expected)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_every_blob_of_a_large_picture_is_found_once(scale):
    rng = np.random.default_rng(3)
    columns, rows = np.meshgrid(np.arange(12, 300, 24), np.arange(12, 200, 24))
    blobs = np.stack([columns.ravel(), rows.ravel()], 1) + rng.uniform(-3, 3, (columns.size, 2))
    blobs = blobs[rng.random(len(blobs)) < 0.6] / scale
    width, height = round(300 / scale), round(200 / scale)
    pixels = sum(blob(width, height, x, y, 2.5 / scale).astype(int) for x, y in blobs).clip(0, 255).astype(np.uint8)
    # Four to a square of 64 pixels on average; some have more, some fewer.
    model = bright_model(fit="tiles", scale=scale)
    found = detect(model, pixels, keypoints=len(blobs), min_gain=-np.inf)
    distance = np.linalg.norm(found.xy[:, None] - blobs[None], axis=2)
    assert (distance.min(0) < 2 / scale).mean() > 0.97, "found"
    assert (np.sort(distance, 0)[1] > 6 / scale).all(), "once"
