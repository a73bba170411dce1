"""Outlines of masks: filled they are the mask, whatever holes and corners it has."""

import numpy as np
import pytest
import shapely

from tusk.detection.rle import mask_from, packed, run_lengths, unpacked
from tusk.export.outlines import polygons_of


def filled(polygons, height, width):
    """By shapely: the pixels whose centres are within one of the polygons."""
    y, x = np.mgrid[:height, :width] + 0.5
    result = np.zeros((height, width), int)
    for one in polygons:
        shape = shapely.Polygon(one.outer, one.holes)
        assert shape.is_valid
        result += shapely.contains_xy(shape, x, y)
    return result


def test_random_masks_come_back():
    rng = np.random.default_rng(0)
    for _ in range(300):
        height, width = rng.integers(1, 9, 2)
        mask = rng.random((height, width)) < rng.random()
        assert np.array_equal(filled(polygons_of(mask), height, width), mask)
        assert np.array_equal(mask_from(unpacked(packed(run_lengths(mask))), height, width), mask)


def test_only_corners_are_in_an_outline():
    mask = np.zeros((9, 9), bool)
    mask[2:6, 1:8] = True
    mask[3, 4] = False
    (one,) = polygons_of(mask)
    assert set(one.outer) == {(1, 2), (8, 2), (8, 6), (1, 6)} and len(one.outer) == 4
    assert [set(hole) for hole in one.holes] == [{(4, 3), (5, 3), (5, 4), (4, 4)}]
    assert polygons_of(np.zeros((3, 3), bool)) == []


def test_runs_that_do_not_fill_the_picture_are_refused():
    with pytest.raises(ValueError, match="do not fill"):
        mask_from([3, 2], 2, 3)
