"""Overlays: dots, numbers and the count are readable at any size, inside the picture, and told apart by everybody."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tests.detection.test_limits import placed
from tusk.detection.draw import draw_points, overlay_png
from tusk.detection.markers import emptiest_corner, marker_sizes, place_labels
from tusk.detection.palette import ink_on, type_colours

# Machado, Oliveira and Fernandes (2009), complete deficiency, on linear RGB.
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colours):
    values = np.asarray(colours, float) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def as_seen(colours, vision):
    """CIELAB of the colours as a reader of that vision sees them."""
    xyz = np.clip(linear(colours) @ np.asarray(vision).T, 0, 1) @ TO_XYZ.T / (0.95047, 1, 1.08883)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], -1)


@pytest.mark.parametrize("vision", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["normal", "protanopia", "deuteranopia"])
def test_the_first_colours_differ_for_every_reader(vision):
    seen = as_seen(type_colours(16), vision)
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1) + 1e9 * np.eye(16)
    # A difference of 2.3 is just noticeable (Mahy and others, 1994).
    assert apart[:4, :4].min() > 20 and apart[:8, :8].min() > 15 and apart.min() > 15


def test_numbers_stand_out_from_their_field():
    def luminance(colour):
        return float(linear([colour])[0] @ (0.2126, 0.7152, 0.0722))

    for colour in type_colours(60):
        light, dark = sorted([luminance(colour), luminance(ink_on(colour))], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour  # WCAG's contrast for text


@pytest.mark.parametrize("size", [(640, 480), (4000, 3000), (3000, 4000), (416, 416)])
def test_markers_grow_with_the_picture(size):
    width, height = size
    few = marker_sizes(width, height, np.array([[10.0, 10.0], [width - 10.0, height - 10.0]]))
    crowd = marker_sizes(width, height, np.random.default_rng(0).random((3000, 2)) * size)
    on_screen = max(1.0, max(size) / 1600)  # how much smaller it is when it is looked at as a whole
    for sizes in (few, crowd):
        assert sizes.text / on_screen >= 11.9 and sizes.dot / on_screen >= 4 and sizes.line >= 1
        assert sizes.text <= 0.04 * max(size) and sizes.panel / on_screen >= 12
    assert crowd.text <= few.text


def test_labels_stay_inside_beside_their_dots_and_out_of_each_others_way():
    rng = np.random.default_rng(1)
    width, height, dot = 640.0, 480.0, 5.0
    corners = [(0, 0), (639, 0), (0, 479), (639, 479), (639, 200), (300, 479)]
    xy = np.concatenate([np.array(corners, float), rng.random((60, 2)) * (width, height)])
    fields = np.tile([22.0, 16.0], (len(xy), 1))
    tops = place_labels(xy, fields, width, height, dot)
    assert (tops >= 0).all() and (tops + fields <= (width, height)).all()
    off = np.maximum(np.maximum(tops - xy, xy - tops - fields), 0).max(1)
    assert off.max() <= 3 * dot, "a number stands at its own dot"
    covered = np.zeros((480, 640), int)
    for left, top in tops.round().astype(int):
        covered[top : top + 16, left : left + 22] += 1
    assert (covered > 1).sum() < 0.02 * (covered > 0).sum()
    assert place_labels(xy[:0], fields[:0], width, height, dot).shape == (0, 2)
    many = rng.random((3000, 2)) * (width, height)  # no search for the best place
    tops = place_labels(many, np.tile([22.0, 16.0], (3000, 1)), width, height, dot)
    assert (tops >= 0).all() and (tops <= (width - 22, height - 16)).all()


def test_the_count_goes_where_no_point_is():
    xy = np.array([[5.0, 5.0], [95.0, 5.0], [5.0, 75.0]])
    assert emptiest_corner(xy, (20, 10), 100, 80) == (80, 70)
    assert emptiest_corner(xy[:0], (20, 10), 100, 80) == (0, 0)


@pytest.mark.parametrize("size", [(640, 480), pytest.param((4000, 3000), marks=pytest.mark.slow)])
def test_overlays_are_as_large_as_the_picture_and_show_dots_numbers_and_the_count(tmp_path, size):
    width, height = size
    Image.new("RGB", size, (120, 120, 120)).save(tmp_path / "grey.png")
    found = placed([(0, 0), (width - 1, height - 1), (width / 2, height / 2)], limit=9)
    found = replace(found, width=width, height=height, type=np.array([0, 1, 12]))
    drawn = np.asarray(Image.open(io.BytesIO(overlay_png(tmp_path / "grey.png", found))).convert("RGB"))
    assert drawn.shape == (height, width, 3)
    colours = type_colours(13)
    for (x, y), number in zip(found.xy.round().astype(int), found.type, strict=True):
        assert tuple(drawn[min(y, height - 2), min(x, width - 2)]) == colours[number], "the dot is on its point"
        dots = (drawn == colours[number]).all(-1)
        assert dots.sum() > 40 * (width / 640) ** 2, "and its number's field is in its colour"
        rows, _ = np.nonzero(dots)
        assert rows.max() - rows.min() > 0.02 * height
    # The panel's corner is dark, with white words in it; the other free corner is as it was.
    assert drawn[5, width - 5].sum() < 150 and drawn[height - 5, 5].tolist() == [120, 120, 120]
    words = (drawn[: height // 8, width // 2 :] > 240).all(-1)
    assert words.sum() > 100 * (width / 640) ** 2
    # All of the words: none touches the right edge.
    assert not words[:, -2:].any()


def test_a_drawing_too_small_for_words_still_has_its_dots():
    drawn = np.asarray(
        draw_points(np.zeros((4, 4, 3), np.uint8), np.array([[1.0, 1.0]]), np.array([7]), 8, 2, count=True)
    )
    assert drawn.shape == (8, 8, 3) and (drawn == type_colours(8)[7]).all(-1).any()


def test_a_picture_without_detections_says_so(tmp_path):
    Image.new("RGB", (640, 480), (250, 250, 250)).save(tmp_path / "white.png")
    empty = replace(placed([]), width=640, height=480)
    drawn = np.asarray(Image.open(io.BytesIO(overlay_png(tmp_path / "white.png", empty))))
    assert (drawn[:30, :60].sum(-1) < 300).mean() > 0.4 and (drawn[100:] == 250).all()


def test_masks_are_tinted_and_outlined(tmp_path):
    Image.new("RGB", (640, 480), (100, 100, 100)).save(tmp_path / "grey.png")
    masks = np.zeros((480, 640), np.uint16)
    masks[200:300, 200:300] = 1
    masks[350:400, 350:400] = 9  # of a detection that was filtered out
    found = replace(placed([(250, 250)]), width=640, height=480, mask_map=masks)
    drawn = np.asarray(Image.open(io.BytesIO(overlay_png(tmp_path / "grey.png", found))).convert("RGB"))
    assert tuple(drawn[200, 220]) == type_colours(1)[0] and drawn[280, 220].tolist() != [100, 100, 100]
    assert drawn[375, 375].tolist() == [100, 100, 100]
