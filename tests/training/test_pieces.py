"""Crosses are things although their arms are blobs; discs in clumps are things because others lie alone."""

import numpy as np
import pytest

from tests.pictures import apart, disc_mask, draw_discs
from tests.training.test_preview import save
from tusk.training.pieces import find_pieces, what_are_things
from tusk.training.preview import look_at

HEIGHT, WIDTH = 240, 320
PAPER, INK = (210, 205, 200), (60, 40, 90)


def crosses(rng, arms=((-14, 0), (14, 0), (0, -14), (0, 14), (0, 0)), number=6):
    """Each of five discs that touch."""
    middles = apart(rng, HEIGHT, WIDTH, [24] * number)
    discs = [(x + across, y + down, 8) for x, y, _ in middles for across, down in arms]
    return draw_discs(HEIGHT, WIDTH, discs), middles


def test_parts_that_never_lie_alone_are_no_things(tmp_path):
    rng = np.random.default_rng(0)
    drawn = [crosses(rng) for _ in range(3)]
    preview = look_at(save(tmp_path, [pixels for pixels, _ in drawn]))
    assert preview.things == "pieces" and preview.has_background
    for glimpse, (_, middles) in zip(preview.glimpses, drawn, strict=True):
        places = np.array([middle[:2] for middle in middles])
        assert len(glimpse.xy) == len(places)
        assert np.hypot(*(glimpse.xy[:, None] - places).T).min(0).max() < 1
    assert 30 < preview.thing_size < 44, "from arm to arm: the disc whose pixels lie as far from its centre"
    settings = preview.settings(sized=True)
    assert settings["losses"] == {"blobs": {"connected": 31.5}}
    assert "what hangs together is one thing" in preview.sentences()[0]


def test_clumps_of_what_lies_alone_too_are_several_things(tmp_path):
    rng = np.random.default_rng(1)
    pairs, _ = zip(*(crosses(rng, arms=((-7, 0), (7, 0)), number=4) for _ in range(4)), strict=True)
    singles, _ = zip(*(crosses(rng, arms=((0, 0),), number=6) for _ in range(4)), strict=True)
    preview = look_at(save(tmp_path, [*pairs, *singles]))
    assert preview.things == "blobs"
    assert preview.thing_size == pytest.approx(16, rel=0.2)
    assert "losses" not in preview.settings(sized=True)


def test_what_the_edge_cuts_off_proves_nothing(tmp_path):
    """Half of each picture belongs to one large piece, as where things fill it."""
    rng = np.random.default_rng(2)
    pictures = []
    for _ in range(4):
        pixels, _ = crosses(rng)
        pixels[:, :140] = np.where(rng.random((HEIGHT, 140, 1)) < 0.9, INK, PAPER)
        pictures.append(pixels)
    preview = look_at(save(tmp_path, pictures))
    assert preview.things == "unclear" and "losses" not in preview.settings(sized=True)
    assert "this may be wrong" in preview.sentences()[0]


def test_pieces_are_in_the_pictures_own_pixels_and_rings_are_filled():
    ring = disc_mask(60, 80, (20, 30, 12)) - disc_mask(60, 80, (20, 30, 7)) > 0.5
    cut = disc_mask(60, 80, (76, 10, 9)) > 0.5
    pieces = find_pieces(ring | cut, np.array([[20.0, 30.0], [40.0, 50.0], [76.0, 10.0]]), 0.5)
    assert pieces.of_blob.tolist() == [0, -1, 1], "a blob in the hole of a ring lies in the ring"
    assert pieces.cut.tolist() == [False, True]
    np.testing.assert_allclose(pieces.xy[0], [40.5, 60.5], atol=0.05)
    np.testing.assert_allclose(pieces.diameter[0], 48, rtol=0.05)
    np.testing.assert_allclose(pieces.area[0], np.pi * 24**2, rtol=0.05)


def test_a_handful_of_pieces_is_too_few_to_judge_by():
    mask = np.zeros((60, 80), bool)
    mask[20:24, 10:40] = True
    few = find_pieces(mask, np.array([[15.0, 21.0], [25.0, 21.0], [35.0, 21.0]]), 1.0)
    for count, least, wanted in ((9, 1.0, "blobs"), (10, 1.0, "pieces"), (10, 50.0, "blobs")):
        assert what_are_things([few] * count, [np.full(3, 4.0)] * count, least) == wanted
