"""Images, maps and points move alike: draw a dot, warp it, find it again."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.config import WarpConfig
from tusk.geometry.warp import sample_warp

STRONG = {"scale": 0.95, "scale_jitter": 0.15, "tps": 0.1, "shift": 0.05, "rotation": 0.4, "translate": 0.1}


def dot(height, width, x, y):
    """A small Gaussian blob at (x, y)."""
    columns, rows = torch.arange(width), torch.arange(height)
    return torch.exp(-((columns - x) ** 2) / 4.5)[None] * torch.exp(-((rows - y) ** 2) / 4.5)[:, None]


def centroid(image):
    height, width = image.shape
    total = image.sum()
    return (
        torch.stack([(image.sum(0) * torch.arange(width)).sum(), (image.sum(1) * torch.arange(height)).sum()]) / total
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.35, 0.65), st.floats(0.35, 0.65), st.sampled_from([(64, 64), (48, 80)]))
def test_a_drawn_dot_is_found_where_the_points_say(seed, u, v, size):
    height, width = size
    x, y = u * width, v * height
    warp = sample_warp(WarpConfig(**STRONG, border="black"), 1, torch.Generator().manual_seed(seed))
    warped = warp.maps(dot(height, width, x, y)[None, None])[0, 0]
    expected = warp.points(torch.tensor([[[x, y]]]), height, width)[0, 0]
    # A warped blob is a little lopsided: its centroid may be a fraction of a pixel off.
    assert (centroid(warped) - expected).norm() < 0.35
    back = warp.source_points(expected.view(1, 1, 2), height, width)[0, 0]
    assert (back - torch.tensor([x, y])).norm() < 1e-3


def test_the_same_warp_at_another_resolution_moves_alike():
    warp = sample_warp(WarpConfig(**STRONG, border="black"), 1, torch.Generator().manual_seed(5))
    large = centroid(warp.maps(dot(128, 128, 70.5, 60.5)[None, None])[0, 0])
    small = centroid(warp.maps(dot(64, 64, 35.0, 30.0)[None, None])[0, 0])
    assert ((large + 0.5) / 2 - 0.5 - small).norm() < 0.35


def test_nothing_configured_moves_nothing():
    warp = sample_warp(WarpConfig(), 2, torch.Generator().manual_seed(0))
    image = torch.rand(2, 3, 20, 30)
    torch.testing.assert_close(warp.images(image), image, atol=1e-4, rtol=0)
    assert warp.inside(20, 30).all()


def test_each_setting_does_what_it_says():
    def moved(point=(50.0, 32.0), **settings):
        warp = sample_warp(WarpConfig(border="black", **settings), 64, torch.Generator().manual_seed(1))
        return warp.source_points(torch.tensor([[point]]).expand(64, -1, -1), 65, 65)[:, 0] - torch.tensor(point)

    assert moved(scale=0.9)[:, 0].mean() < -0.5  # the grid is drawn in: a pixel right of the centre reads further left
    assert moved(scale=1.1)[:, 0].mean() > 0.5
    turned = moved(rotation=0.3)
    assert turned[:, 1].abs().mean() > 0.5 and turned[:, 1].mean().abs() < 1.5
    assert moved(tps=0.1).norm(dim=-1).mean() > 0.3
    shifted = moved(translate=0.4)  # of half of 65 pixels
    assert 10 < shifted.abs().max() <= 13 and shifted.mean(0).abs().max() < 3
    assert moved(scale=1.0).norm(dim=-1).max() < 1e-3


@pytest.mark.parametrize(("border", "value"), [("black", 0.0), ("white", 1.0), ("reflect", 0.5)])
def test_what_lies_outside_the_frame(border, value):
    warp = sample_warp(WarpConfig(scale=1.2, border=border), 1, torch.Generator().manual_seed(0))
    warped = warp.images(torch.full((1, 3, 40, 40), 0.5))
    corner = warped[0, :, 0, 20]
    torch.testing.assert_close(corner, torch.full((3,), value), atol=1e-5, rtol=0)
    assert not warp.inside(40, 40)[0, 0, 0, 20]
    torch.testing.assert_close(warped[0, :, 20, 20], torch.full((3,), 0.5))


def test_seeded_and_sliceable():
    config = WarpConfig(**STRONG, surroundings=(0.4, 0.7))
    images = torch.rand(4, 3, 16, 16)
    first = sample_warp(config, 4, torch.Generator().manual_seed(7))
    again = sample_warp(config, 4, torch.Generator().manual_seed(7))
    other = sample_warp(config, 4, torch.Generator().manual_seed(8))
    assert torch.equal(first.images(images), again.images(images))
    assert not torch.equal(first.images(images), other.images(images))
    torch.testing.assert_close(first[1:3].images(images[1:3]), first.images(images)[1:3])


def test_other_surroundings_leave_a_window_and_say_which():
    """Brute force: a pixel is the original's own exactly where its picture with and without the setting agree."""
    plain, changed = (
        sample_warp(WarpConfig(surroundings=window), 8, torch.Generator().manual_seed(3))
        for window in (None, (0.4, 0.7))
    )
    images = torch.rand(8, 3, 40, 60, generator=torch.Generator().manual_seed(4))
    same = (plain.images(images) == changed.images(images)).all(1, keepdim=True)
    assert torch.equal(changed.inside(40, 60), same & plain.inside(40, 60))
    assert plain.inside(40, 60).all()
    for own in same[:, 0]:
        rows, columns = own.any(1).sum(), own.any(0).sum()
        assert own.sum() == rows * columns  # a rectangle
        assert 0.4 * 40 - 1 <= rows <= 0.7 * 40 + 1 and 0.4 * 60 - 1 <= columns <= 0.7 * 60 + 1


def test_places_are_kept_where_all_around_them_is():
    warp = sample_warp(WarpConfig(surroundings=(0.5, 0.9)), 6, torch.Generator().manual_seed(1))
    own = warp.inside(40, 60)[:, 0]
    points = torch.cartesian_prod(torch.arange(60), torch.arange(40)).float()
    kept = warp.keeps(points.expand(6, -1, -1), 40, 60, margin=3.0)
    for image in range(6):
        for (x, y), keeps in zip(points.long().tolist(), kept[image].tolist(), strict=True):
            around = own[image, max(0, y - 3) : y + 4, max(0, x - 3) : x + 4].all()
            nearly = own[image, max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].all()
            # The window's edges lie between pixels.
            assert keeps == around or (nearly and not around)
    assert sample_warp(WarpConfig(), 2, torch.Generator()).keeps(torch.zeros(2, 3, 2), 40, 60, 3.0).all()
