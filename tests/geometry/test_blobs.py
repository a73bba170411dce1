"""Things of any size without learning, against slow and obvious references."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from tests.pictures import disc_mask
from tusk.geometry.blobs import (
    _largest_around,
    blob_radii,
    blob_responses,
    find_blobs,
    radial_symmetry,
    suppress_by_size,
    thing_responses,
)

RADII = blob_radii(1.2, 16)


def drawn(*discs, side=64):
    return torch.from_numpy(disc_mask(side, side, *discs))[None, None].float()


def found(foreground, least=0.14):
    """[(x, y, radius, response)] of one map, best first."""
    xy, radius, response = find_blobs(thing_responses(foreground, RADII), RADII, least, 48)
    values = torch.cat([xy[0], radius[0, :, None], response[0, :, None]], 1)
    return values[response[0] > 0].tolist()


def test_radii_from_the_smallest_to_the_largest():
    assert RADII[0] == 1.2 and 16 / 1.25 < RADII[-1] <= 16
    np.testing.assert_allclose(np.array(RADII[1:]) / RADII[:-1], 1.25)
    assert blob_radii(3, 3) == [3]


@pytest.mark.parametrize("radius", [2, 3, 5, 7, 10, 14])
@pytest.mark.parametrize("height", [1.0, 0.6])
def test_a_lone_disc_is_one_thing_of_its_size(radius, height):
    ((x, y, size, response),) = found(height * drawn((30.3, 33.6, radius)))
    assert math.hypot(x - 30.3, y - 33.6) < 1
    assert radius / 1.25 <= size <= radius * 1.25
    assert response > 0.4 * height


def test_the_response_of_a_large_disc_is_about_one_and_proportional_to_its_height():
    whole, half = (found(height * drawn((32, 32, 10)))[0][3] for height in (1.0, 0.5))
    assert whole == pytest.approx(1.05, abs=0.1)
    assert half == pytest.approx(whole / 2, rel=0.01)


@pytest.mark.parametrize(("outer", "wide"), [(5, 1.2), (5, 2), (8, 3), (12, 3)])
def test_a_ring_is_one_thing(outer, wide):
    ring = drawn((32.3, 31.6, outer)) - drawn((32.3, 31.6, outer - wide))
    best, *others = found(ring)
    assert math.hypot(best[0] - 32.3, best[1] - 31.6) < 1 and outer / 1.3 <= best[2] <= outer * 1.3
    # On a wide ring there may be specks, but none that comes near it.
    assert all(response < best[3] / 2 for *_, response in others)


def test_two_that_touch_are_two():
    places = sorted((x, y) for x, y, *_ in found(drawn((20, 32, 8), (36, 32, 8))))
    np.testing.assert_allclose(places, [(20, 32), (36, 32)], atol=1.5)


@pytest.mark.parametrize("small", [(50.0, 44.0), (39.5, 30.0)], ids=["apart", "touching"])
def test_a_large_one_and_one_of_a_fifth_of_its_size(small):
    first, second = found(drawn((24, 30, 12), (*small, 2.4)))
    np.testing.assert_allclose(first[:2], (24, 30), atol=1)
    np.testing.assert_allclose(second[:2], small, atol=1)
    assert first[2] == pytest.approx(12, rel=0.25) and second[2] == pytest.approx(2.4, rel=0.25)


@pytest.mark.parametrize("level", [0.0, 0.3, 1.0])
def test_even_ground_holds_nothing(level):
    even = torch.full((1, 1, 40, 40), level)
    assert found(even) == []
    assert blob_responses(even, RADII).abs().max() < 1e-4


def test_what_lies_in_one_image_of_a_batch_does_not_matter_to_the_others():
    maps = torch.cat([drawn((12, 12, 6), side=32), drawn(side=32), drawn((20, 12, 9), (8, 26, 4), side=32)])
    together = thing_responses(maps, RADII)
    for place in range(3):
        torch.testing.assert_close(thing_responses(maps[place : place + 1], RADII), together[place : place + 1])


@pytest.mark.parametrize("size", [(3, 3), (1, 40), (17, 90)], ids=str)
def test_maps_of_any_size(size):
    responses = thing_responses(torch.rand(2, 1, *size), RADII)
    assert responses.shape == (2, len(RADII), *size) and responses.isfinite().all()
    xy, radius, response = find_blobs(responses, RADII, 0.1, 200)
    assert len(xy[0]) == len(radius[0]) == len(response[0]) == min(200, len(RADII) * size[0] * size[1])


def test_no_more_than_asked_for_and_the_best_of_them():
    field = drawn((12, 12, 6), (40, 14, 6)) + 0.6 * drawn((14, 44, 6)) + 0.4 * drawn((44, 44, 6))
    xy, _, response = find_blobs(thing_responses(field, RADII), RADII, 0.14, 48)
    few = find_blobs(thing_responses(field, RADII), RADII, 0.14, 3)
    assert few[0].shape == (1, 3, 2)
    assert (response.sort(descending=True, stable=True).values[0, :4] > 0).all()
    torch.testing.assert_close(few[0], xy[:, :3])


def naive_symmetry(field, radius):
    """(h, w) -> (h, w): pixel after pixel, and vote after vote, with the blur of another library."""
    height, width = field.shape
    smooth = ndimage.gaussian_filter(field, 0.8, mode="nearest", truncate=3.5)
    votes = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            right, left = smooth[row, min(column + 1, width - 1)], smooth[row, max(column - 1, 0)]
            below, above = smooth[min(row + 1, height - 1), column], smooth[max(row - 1, 0), column]
            across, down = (right - left) / 2, (below - above) / 2
            step = math.hypot(across, down)
            x = column + radius * across / (step + 1e-6)
            y = row + radius * down / (step + 1e-6)
            for place_y in range(height):
                for place_x in range(width):
                    share = max(0, 1 - abs(x - place_x)) * max(0, 1 - abs(y - place_y))
                    votes[place_y, place_x] += share * step
    spread = max(0.5, 0.3 * radius)
    reach = max(1, math.ceil(3 * spread))
    blurred = ndimage.gaussian_filter(votes, spread, mode="nearest", radius=reach)
    return blurred * spread**2 / radius


@pytest.mark.parametrize("radius", [1.2, 3.0, 5.5])
def test_radial_symmetry_as_by_hand(radius):
    field = disc_mask(14, 17, (7.4, 6.3, 3.1), (13, 10, 2)) * 0.8
    ours = radial_symmetry(torch.from_numpy(field).double()[None, None], [radius])[0, 0]
    np.testing.assert_allclose(ours.numpy(), naive_symmetry(field.astype(float), radius), atol=1e-4)


def naive_suppression(xy, radius, valid, closeness):
    kept = []
    for place in range(len(xy)):
        better = (
            other
            for other in kept
            if math.dist(xy[place], xy[other]) < closeness * max(float(radius[place]), float(radius[other]))
        )
        if valid[place] and next(better, None) is None:
            kept.append(place)
    return [place in kept for place in range(len(xy))]


@pytest.mark.parametrize("closeness", [0.6, 1.0])
@pytest.mark.parametrize("count", [1, 20, 200])
def test_suppression_as_by_hand(count, closeness):
    """Also where a distance is exactly the limit, as it often is on a grid, far from the origin."""
    draw = torch.Generator().manual_seed(count)
    xy = torch.randint(560, 640, (3, count, 2), generator=draw).float()
    radius = torch.randint(1, 12, (3, count), generator=draw) * 5.0 / closeness / 5
    valid = torch.rand(3, count, generator=draw) > 0.2
    kept = suppress_by_size(xy, radius, valid, closeness)
    for place in range(3):
        assert kept[place].tolist() == naive_suppression(xy[place].tolist(), radius[place], valid[place], closeness)


def test_the_largest_around_is_that_of_a_pooling_in_three_directions():
    responses = torch.rand(2, 4, 7, 9, generator=torch.Generator().manual_seed(3)) - 0.5
    pooled = torch.nn.functional.max_pool3d(responses[:, None], 3, 1, 1)[:, 0]
    assert torch.equal(_largest_around(responses), pooled)
    assert torch.equal(
        _largest_around(responses[:, :1, :1]), torch.nn.functional.max_pool2d(responses[:, :1, :1], (1, 3), 1, (0, 1))
    )
