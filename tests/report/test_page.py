"""Pictures and pages: points land on their pixels, and a page stands by itself."""

import base64
import io
import re

import numpy as np
from PIL import Image

from tusk.report.draw import crop, draw_points, draw_score, png_uri, to_bytes, type_colours
from tusk.report.page import Curve, Figure, Page, PictureRow, TypeCard, render_page, write_page


def test_points_land_on_their_pixels():
    image = np.zeros((20, 30, 3), np.uint8)
    drawn = np.asarray(draw_points(image, np.array([[7.0, 12.0]]), np.array([2]), types=5, factor=4))
    assert drawn.shape == (80, 120, 3)
    assert tuple(drawn[int(12.5 * 4), int(7.5 * 4)]) == type_colours(5)[2]


def test_colours_differ():
    colours = np.array(type_colours(24), float)
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=-1) + 1e9 * np.eye(24)
    assert apart.min() > 12


def test_crops_are_centred_and_padded():
    image = np.zeros((10, 10, 3), np.uint8)
    image[4, 6] = 255
    middle = crop(image, 6, 4, 5)
    assert middle.shape == (5, 5, 3) and middle[2, 2, 0] == 255
    assert crop(image, 0, 0, 6).shape == (6, 6, 3)
    assert crop(image, 9, 9, 6)[-1].sum() == 0


def test_pictures_survive_as_text():
    picture = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    data = base64.b64decode(png_uri(picture).partition(",")[2])
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), np.asarray(picture))


def test_values_outside_are_clipped():
    assert to_bytes(np.array([-1.0, 0.5, 2.0]).reshape(3, 1, 1)).tolist() == [[[0, 128, 255]]]
    assert draw_score(np.array([[0.0, 2.0]]), 10).size == (10, 10)


def test_a_page_stands_by_itself_and_escapes_words(tmp_path):
    picture = Image.new("RGB", (8, 8), (10, 200, 30))
    page = Page(
        title="A <b>title",
        words=["some & words"],
        figures=[Figure("99%", "of <things>")],
        rows=[PictureRow((("one", picture), ("two", picture)))],
        types=[TypeCard(3, (1, 2, 3), 7, picture, (picture,))],
        curves=[Curve("error", [1, 2, 3], [0.5, 0.2, 0.1]), Curve("flat", [1], [0.0])],
    )
    text = render_page(page)
    assert "A &lt;b&gt;title" in text and "some &amp; words" in text and "of &lt;things&gt;" in text
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    assert "Type 3" in text and "7 found" in text and "nan" not in text
    write_page(tmp_path / "deep" / "page.html", page)
    assert (tmp_path / "deep" / "page.html").read_text() == text
    assert len(list((tmp_path / "deep").iterdir())) == 1
