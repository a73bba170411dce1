"""Points go from the picture to the network's image and back, and drawn dots with them."""

from __future__ import annotations

from typing import get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.data.framing import Whole, place, place_tiles, render, render_each
from tusk.data.images import Picture

sides = st.integers(1, 400)


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
    if fit == "letterbox":
        assert (placement.width, placement.height) == (width, height)
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
    image = render(Picture(pixels, width, height), placement, 40, grey=True)[:, :, 0].astype(float)
    row, column = np.unravel_index(image.argmax(), image.shape)
    assert np.abs(placement.to_original([column, row]) - [x, y]).max() <= 0.75 * max(placement.scale) + 0.5


@given(st.integers(1, 500), st.integers(1, 500), st.sampled_from([8, 37, 80]), st.sampled_from([0.3, 1.0, 1.7]))
def test_pieces_cover_all_of_a_picture_and_nothing_else(width: int, height: int, size: int, scale: float) -> None:
    pieces = place_tiles(width, height, size, scale)
    seen = np.zeros((max(1, round(height * scale)), max(1, round(width * scale))), np.int64)
    for piece in pieces:
        x, y = piece.to_original([piece.column, piece.row])  # where the picture begins in it
        left, top = (
            round((at + 0.5) * side / whole - 0.5)
            for at, side, whole in zip((x, y), seen.shape[::-1], (width, height), strict=True)
        )
        assert 0 <= piece.column <= piece.column + piece.columns <= size
        assert 0 <= piece.row <= piece.row + piece.rows <= size
        part = seen[top : top + piece.rows, left : left + piece.columns]
        assert part.shape == (piece.rows, piece.columns)
        part += 1
    assert seen.min() == 1
    assert seen.max() <= 4  # no more than neighbours overlap
    fewest = -(-seen.shape[0] // size) * -(-seen.shape[1] // size)
    assert len(pieces) == fewest


@given(st.integers(20, 200), st.integers(20, 200))
def test_pieces_at_the_pictures_own_scale_are_its_own_pixels(width: int, height: int) -> None:
    pixels = np.random.default_rng(width * height).integers(0, 256, (height, width, 3), dtype=np.uint8)
    pieces = place_tiles(width, height, 16)
    for piece, image in zip(pieces, render_each(Picture(pixels, width, height), pieces, 16, grey=False), strict=True):
        left, top = int(piece.left), int(piece.top)
        assert (left, top) == (piece.left, piece.top)
        np.testing.assert_array_equal(image, pixels[top : top + 16, left : left + 16])
