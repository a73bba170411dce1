"""A picture's own smooth background becomes an even grey, whatever its light, and things keep differing from it."""

import numpy as np
import pytest

from tests.pictures import apart, disc_mask, draw_discs
from tusk.data.flat_field import GREY, THRESHOLD, flatten_background, measure_background, otsu_threshold
from tusk.data.framing.frame import Framing
from tusk.data.images import Picture

HEIGHT, WIDTH = 160, 200
DISCS = apart(np.random.default_rng(3), HEIGHT, WIDTH, [6, 7, 8, 9, 10, 11, 12, 13, 7, 9])
KINDS = {
    "dark on bright": ((210, 205, 200), [(60, 40, 90)]),
    "bright on dark": ((30, 30, 35), [(190, 200, 180)]),
    "of other colours": ((150, 150, 150), [(230, 90, 90), (70, 150, 230)]),
    "darker and brighter": ((120, 120, 120), [(30, 30, 30), (220, 220, 220)]),
}


def differences(pixels):
    """(H, W): from the grey, in levels, as a root mean square over the channels."""
    return np.sqrt(((flatten_background(pixels).astype(float) - GREY) ** 2).mean(2))


def parts(grow=1.5):
    """Surely background, and surely within a disc."""
    wide, narrow = (
        disc_mask(HEIGHT, WIDTH, *((x, y, radius + more) for x, y, radius in DISCS)) for more in (grow, -grow)
    )
    return wide == 0, narrow == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gradient", [(0, 0), (30, 0), (-20, 15), (0, -30)], ids=str)
def test_the_background_is_grey_and_things_differ(kind, gradient):
    base, colours = KINDS[kind]
    different = differences(draw_discs(HEIGHT, WIDTH, DISCS, colours, base=base, gradient=gradient))
    background, things = parts()
    assert different[background].max() < 8
    assert different[things].min() > 1.5 * 255 * THRESHOLD


def test_light_and_contrast_hardly_matter():
    """Half the contrast, another brightness, an uneven lamp: the same picture comes before the network."""
    plain = draw_discs(HEIGHT, WIDTH, DISCS)
    background, things = parts()
    wanted = flatten_background(plain).astype(int)
    lamp = np.linspace(1.0, 0.8, WIDTH)[:, None]
    for other in (plain * 0.5 + 20, plain * 0.7 + 70, plain * lamp):
        corrected = flatten_background(np.rint(other).astype(np.uint8)).astype(int)
        assert np.abs(corrected - wanted)[background].max() <= 8
        assert np.abs(corrected - wanted)[things].mean() <= 12


def test_differences_keep_their_sign_and_hue():
    colours = [(210, 120, 200), (210, 255, 200)]
    corrected = flatten_background(draw_discs(HEIGHT, WIDTH, DISCS, colours)).astype(int)
    for number, (x, y, _) in enumerate(DISCS):
        red, green, blue = corrected[round(y), round(x)]
        assert abs(red - GREY) <= 3 and abs(blue - GREY) <= 3
        assert green < GREY - 20 if number % 2 == 0 else green > GREY + 10


@pytest.mark.parametrize("size", [(1, 1), (1, 60), (60, 1), (2, 3), (1, 2000), (90, 70)], ids=str)
@pytest.mark.parametrize("level", [0, 7, 255])
def test_a_picture_of_one_colour_is_grey_whatever_its_size(size, level):
    assert (flatten_background(np.full((*size, 3), level, np.uint8)) == GREY).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 60), (60, 1), (2, 2), (5, 900)], ids=str)
def test_noise_of_any_size_is_taken(size):
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)
    corrected = flatten_background(pixels)
    assert corrected.shape == pixels.shape and corrected.dtype == np.uint8


def test_what_is_measured_does_not_depend_on_the_resolution():
    small = draw_discs(HEIGHT, WIDTH, DISCS, gradient=(-20, 10))
    large = small.repeat(3, 0).repeat(3, 1)
    first, second = measure_background(small), measure_background(large)
    assert second.threshold == pytest.approx(first.threshold, rel=0.1)
    assert second.cover == pytest.approx(first.cover, rel=0.15)
    assert first.cover == pytest.approx(disc_mask(HEIGHT, WIDTH, *DISCS).mean(), rel=0.25)


def test_otsu_against_every_threshold():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(1, 0.3, 700), rng.normal(4, 0.6, 200)])

    def within(threshold):
        groups = values[values <= threshold], values[values > threshold]
        return sum(len(group) * group.var() for group in groups if len(group))

    tried = np.linspace(values.min(), values.max(), 500)
    assert within(otsu_threshold(values)) <= 1.01 * min(within(threshold) for threshold in tried)


def test_bars_around_a_picture_are_grey_too():
    """A small picture in a tile: what lies around it is background, not a black frame full of edges."""
    pixels = draw_discs(40, 60, [(30, 20, 9)])
    picture = Picture(pixels, 60, 40)
    for contrast, level in (("flat", GREY), ("full", 0)):
        framing = Framing(96, "tiles", 1.0, contrast)
        frame = framing.frame(60, 40, 96)
        (image,) = framing.render(picture, [frame.placement], (frame.height, frame.width))
        assert image.shape == (96, 96, 3)
        outside = np.ones((96, 96), bool)
        outside[28:68, 18:78] = False
        assert (image[outside] == level).all()
        if contrast == "flat":
            np.testing.assert_array_equal(image[28:68, 18:78], flatten_background(pixels))
