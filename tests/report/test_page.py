"""Pictures and the page around them: points land on their pixels, and a page is complete."""

import base64
import io

import numpy as np
from PIL import Image

from tests.report.reader import read_page
from tusk.detection.draw import draw_points, type_colours
from tusk.report.draw import colour_names, crop, draw_score, picture_uri, to_bytes
from tusk.report.page import Fact, Figure, Page, Section, render_page, write_page
from tusk.report.remark import Remark, Verdict


def opened(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_points_land_on_their_pixels():
    image = np.zeros((20, 30, 3), np.uint8)
    drawn = np.asarray(draw_points(image, np.array([[7.0, 12.0]]), np.array([2]), types=5, factor=4))
    assert drawn.shape == (80, 120, 3)
    assert tuple(drawn[int(12.5 * 4), int(7.5 * 4)]) == type_colours(5)[2]


def test_colours_differ_and_stay_when_there_are_more_types():
    colours = np.array(type_colours(24), float)
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=-1) + 1e9 * np.eye(24)
    assert apart.min() > 12
    assert type_colours(114)[:24] == type_colours(24) and len(set(type_colours(114))) == 114


def test_kinds_that_are_colours_keep_them():
    assert colour_names(("red", "Blue")) == [(255, 0, 0), (0, 0, 255)]
    assert colour_names(("red", "cube")) is None and colour_names(()) is None


def test_crops_are_centred_and_padded():
    image = np.zeros((10, 10, 3), np.uint8)
    image[4, 6] = 255
    middle = crop(image, 6, 4, 5)
    assert middle.shape == (5, 5, 3) and middle[2, 2, 0] == 255
    assert crop(image, 0, 0, 6).shape == (6, 6, 3)
    assert crop(image, 9, 9, 6)[-1].sum() == 0


def test_pictures_survive_as_text_and_large_ones_shrink():
    for channels in (3, 4):
        pixels = np.random.default_rng(0).integers(0, 255, (12, 9, channels), np.uint8)
        assert np.array_equal(opened(picture_uri(pixels)), pixels)
    large = np.full((2000, 1000, 3), 77, np.uint8)
    assert max(opened(picture_uri(large)).shape) <= 320
    assert len(picture_uri(np.random.default_rng(0).integers(0, 255, (2000, 1000, 3), np.uint8))) < 200_000


def test_values_outside_are_clipped_and_scores_grow_lighter():
    assert to_bytes(np.array([-1.0, 0.5, 2.0]).reshape(3, 1, 1)).tolist() == [[[0, 128, 255]]]
    drawn = draw_score(np.linspace(-0.5, 1.5, 200)[None]).astype(int) @ [299, 587, 114]
    assert (np.diff(drawn[0]) >= 0).all() and drawn[0, -1] > 200_000 > 20_000 > drawn[0, 0]


def test_a_page_stands_by_itself_and_escapes_words(tmp_path):
    evil = '<img src=x onerror="alert(1)">&'
    page = Page(
        title=f"A title {evil}",
        words=[f"some {evil} words", "more"],
        figures=[Figure("99%", f"of {evil}")],
        facts=[Fact("Command", f"tusk train {evil} \udcff")],  # a file name need not be valid Unicode
        remarks=[Remark("bad", "no"), Remark("warn", f"mend {evil}"), Remark("ok", "fine")],
        verdict=Verdict("bad", f"Do not trust {evil}"),
        sections=[Section("one", f"One {evil}", f"about {evil}", "<p>body</p>"), Section("none", "None", "", "")],
    )
    write_page(tmp_path / "deep" / "page.html", page)
    text = (tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert text == render_page(page).replace("\udcff", "\\udcff")
    read = read_page(text)
    assert read.text.count(evil) >= 8 and "<img" not in text
    assert read.ids == ["state", "run", "one"] and "None" not in read.text
    assert [kind for kind in read.classes if kind in ("well", "amiss", "bad")] == ["bad", "amiss", "well"]
    assert "verdict bad" in read.classes and text.index("Do not trust") < text.index("some ")
    assert len(list((tmp_path / "deep").iterdir())) == 1
