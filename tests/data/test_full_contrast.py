"""Full contrast against numpy's percentiles, and where it must hold back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tusk.data.tones import to_full_contrast


@given(st.integers(0, 100), st.integers(20, 150), st.integers(0, 10**6))
def test_darkest_is_black_and_brightest_white(low, span, seed):
    pixels = np.random.default_rng(seed).integers(low, low + span, (60, 50, 3), dtype=np.uint8)
    full = to_full_contrast(pixels)
    dark, bright = np.percentile(pixels, [0.5, 99.8], method="inverted_cdf").astype(float)
    expected = np.clip((pixels - dark) / (bright - dark), 0, 1) * 255
    assert np.abs(full - expected).max() <= 255 / (bright - dark) + 1  # it may be off by one of the picture's steps
    assert (full == 0).mean() >= 0.004 and (full == 255).mean() >= 0.001


def test_a_picture_that_has_it_stays_as_it_is():
    pixels = np.random.default_rng(0).choice(np.array([0, 0, 0, 90, 200, 255], np.uint8), (40, 40, 3))
    np.testing.assert_array_equal(to_full_contrast(pixels), pixels)


def test_noise_is_not_made_things_of_and_one_colour_is_no_fault():
    noise = np.random.default_rng(0).integers(50, 54, (40, 40, 3), dtype=np.uint8)
    assert to_full_contrast(noise).max() <= 4 * 255 / 16
    assert (to_full_contrast(np.full((5, 5, 3), 77, np.uint8)) == 0).all()


def test_dust_does_not_dim_everything_else():
    pixels = np.random.default_rng(0).integers(10, 60, (100, 100, 3), dtype=np.uint8)
    dusty = pixels.copy()
    dusty[50, 50:55] = 255
    clean, seen = to_full_contrast(pixels).astype(int), to_full_contrast(dusty).astype(int)
    assert np.abs(clean - seen)[:50].max() <= 6


def test_hues_stay():
    pixels = np.zeros((20, 20, 3), np.uint8)
    pixels[5:10, 5:10] = (60, 30, 0)
    pixels[12:18, 12:18] = (0, 30, 60)
    full = to_full_contrast(pixels).astype(float)
    assert (full[7, 7] == (255, 128, 0)).all() and (full[15, 15] == (0, 128, 255)).all()
