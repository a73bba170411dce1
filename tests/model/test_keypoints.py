"""Fast keypoint extraction against loops that are too slow to use and too simple to be wrong."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.errors import UsageError
from tusk.geometry.sampling import sample_bilinear, sample_truncated
from tusk.model.keypoints import extract_keypoints, extract_sized_keypoints, find_peaks, most_peaks


def slow_peaks(score_map, window):
    """Pixels that are larger than every earlier and no smaller than every later pixel of their window."""
    height, width = score_map.shape
    reach = window // 2
    peaks = []
    for y in range(height):
        for x in range(width):
            best = True
            for v in range(max(0, y - reach), min(height, y + reach + 1)):
                for u in range(max(0, x - reach), min(width, x + reach + 1)):
                    earlier = (v, u) < (y, x)
                    if score_map[v, u] > score_map[y, x] or (earlier and score_map[v, u] == score_map[y, x]):
                        best = False
            if best:
                peaks.append((y, x))
    return peaks


def slow_keypoints(score_map, count, window, temperature, count_border):
    """Straight from the method's text, in torch so that gradients can be compared; score_map (H, W)."""
    height, width = score_map.shape
    peaks = slow_peaks(score_map.detach().numpy(), window)
    peaks = sorted(peaks, key=lambda place: -score_map[place].item())[:count]
    reach = window // 2
    found = []
    for y, x in peaks:
        total, sum_x, sum_y = 0, 0, 0
        for v in range(y - reach, y + reach + 1):
            for u in range(x - reach, x + reach + 1):
                inside = 0 <= v < height and 0 <= u < width
                if not inside and not count_border:
                    continue
                score = score_map[v, u] if inside else torch.zeros((), dtype=score_map.dtype)
                weight = torch.exp(score / temperature)
                total, sum_x, sum_y = total + weight, sum_x + weight * u, sum_y + weight * v
        found.append(torch.stack([sum_x / total, sum_y / total]))
    return torch.stack(found)


maps = st.tuples(st.integers(0, 2**31), st.integers(9, 17), st.integers(9, 17), st.sampled_from([3, 5, 7]))


@settings(max_examples=25, deadline=None)
@given(maps)
def test_peaks_equal_the_slow_reference(case):
    seed, height, width, window = case
    rng = np.random.default_rng(seed)
    # Few distinct values, so that equal neighbours occur.
    score_map = torch.tensor(rng.integers(0, 6, (1, 1, height, width)) / 6.0)
    fast = find_peaks(score_map, window)[0].view(height, width).nonzero().tolist()
    assert [tuple(place) for place in fast] == slow_peaks(score_map[0, 0].numpy(), window)


@settings(max_examples=25, deadline=None)
@given(maps, st.booleans())
def test_locations_and_gradients_equal_the_slow_reference(case, count_border):
    seed, height, width, window = case
    rng = np.random.default_rng(seed)
    values = torch.tensor(rng.random((1, 1, height, width)))
    count = min(3, int(find_peaks(values, window).sum()))
    weight = torch.tensor(rng.normal(size=(count, 2)))

    fast_map = values.clone().requires_grad_()
    fast = extract_keypoints(fast_map, count, window, 0.2, count_border=count_border)
    (fast.xy[0] * weight).sum().backward()

    slow_map = values.clone().requires_grad_()
    slow = slow_keypoints(slow_map[0, 0], count, window, 0.2, count_border)
    (slow * weight).sum().backward()
    np.testing.assert_allclose(fast.xy[0].detach(), slow.detach(), atol=1e-9)
    np.testing.assert_allclose(fast_map.grad, slow_map.grad, atol=1e-9)


def test_a_flat_map_is_one_peak_not_a_crowd():
    assert int(find_peaks(torch.full((1, 1, 20, 20), 0.5), 5).sum()) == 1


def test_border_points_are_not_pulled_when_the_outside_is_left_out():
    score_map = torch.zeros(1, 1, 21, 21)
    score_map[0, 0, 0, 10] = 1.0
    left_out = extract_keypoints(score_map, 1, 9, 0.2).xy[0, 0]
    counted = extract_keypoints(score_map, 1, 9, 0.2, count_border=True).xy[0, 0]
    assert left_out[0] == pytest.approx(10) and counted[0] == pytest.approx(10)
    assert counted[1] < left_out[1]  # cells above the image drag the point upwards


def test_fewer_peaks_than_asked_leaves_empty_keypoints():
    score_map = torch.full((1, 1, 16, 16), 0.5)
    points = extract_keypoints(score_map, 4, 3, 0.2)
    assert points.found.tolist() == [[True, False, False, False]]
    assert points.score[0, 1:].tolist() == [0, 0, 0]


def test_more_keypoints_than_can_ever_fit_is_refused():
    assert most_peaks(10, 10, 5) == 16
    with pytest.raises(UsageError, match="at most 16"):
        extract_keypoints(torch.rand(1, 1, 10, 10), 17, 5, 0.2)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31))
def test_bilinear_reading_equals_the_four_pixel_formula(seed):
    rng = np.random.default_rng(seed)
    values = torch.tensor(rng.random((2, 3, 7, 9)))
    xy = torch.tensor(rng.random((2, 5, 2)) * [8, 6])
    fast = sample_bilinear(values, xy)
    for b in range(2):
        for k in range(5):
            x, y = xy[b, k].tolist()
            u, v = min(int(x), 7), min(int(y), 5)
            a, c = x - u, y - v
            four = values[b, :, v : v + 2, u : u + 2]
            slow = (
                four[:, 0, 0] * (1 - a) * (1 - c)
                + four[:, 0, 1] * a * (1 - c)
                + four[:, 1, 0] * (1 - a) * c
                + four[:, 1, 1] * a * c
            )
            np.testing.assert_allclose(fast[b, k], slow, atol=1e-9)


def test_truncated_reading_takes_the_pixel_left_and_above():
    values = torch.arange(12.0).view(1, 1, 3, 4)
    assert sample_truncated(values, torch.tensor([[[2.9, 1.2], [-0.4, 0.0], [3.0, 2.0]]]))[0, :, 0].tolist() == [
        6,
        0,
        11,
    ]


def peaks_at(*places, side=32):
    """(1, 1, side, side), nearly 0 but for these (x, y, score)."""
    score_map = torch.full((1, 1, side, side), 1e-5)
    for x, y, score in places:
        score_map[0, 0, y, x] = score
    return score_map


def places_of(points):
    return [tuple(place) for place in points.xy[0, points.found[0]].round().int().tolist()]


def test_of_two_sized_peaks_closer_than_their_radius_only_the_better_one_is_left():
    score_map = peaks_at((8, 8, 0.9), (14, 8, 0.8), (24, 24, 0.7), (30, 24, 0.6))
    radius_map = torch.full_like(score_map, 3.0)
    radius_map[..., :16, :] = 12.0  # the two above lie 6 apart: within 0.6 of this radius, but not of the other
    points = extract_sized_keypoints(score_map, radius_map, 6, 3, 0.01)
    assert places_of(points) == [(8, 8), (24, 24), (30, 24)]
    assert points.found.tolist() == [[True] * 3 + [False] * 3]
    torch.testing.assert_close(points.score[0], torch.tensor([0.9, 0.7, 0.6, 0, 0, 0]), atol=1e-3, rtol=0)
    torch.testing.assert_close(points.radius[0, :3], torch.tensor([12.0, 3.0, 3.0]))


def test_an_empty_map_gives_no_sized_keypoint_and_a_small_one_no_more_than_it_has():
    empty = torch.full((2, 1, 16, 16), 1e-4)
    assert not extract_sized_keypoints(empty, torch.ones_like(empty), 5, 3, 0.2).found.any()
    tiny = torch.full((1, 1, 2, 2), 0.5)
    points = extract_sized_keypoints(tiny, torch.ones_like(tiny), 9, 3, 0.2)
    assert points.xy.shape == (1, 4, 2) and points.found.sum() == 1


def test_places_scores_and_sizes_have_gradients():
    score_map = torch.rand(1, 1, 12, 12, generator=torch.Generator().manual_seed(0)).requires_grad_()
    radius_map = torch.full((1, 1, 12, 12), 2.0, requires_grad=True)
    points = extract_sized_keypoints(score_map, radius_map, 3, 3, 0.2)
    (points.xy.sum() + points.score.sum() + points.radius.sum()).backward()
    assert score_map.grad.abs().sum() > 0 and radius_map.grad.sum() == pytest.approx(3.0)


def test_a_part_of_the_images_keeps_its_sizes():
    score_map = torch.rand(3, 1, 12, 12)
    points = extract_sized_keypoints(score_map, torch.rand(3, 1, 12, 12) + 1, 4, 3, 0.2)
    torch.testing.assert_close(points[1:2].radius, points.radius[1:2])
    assert extract_keypoints(score_map, 4, 3, 0.2)[1:].radius is None
