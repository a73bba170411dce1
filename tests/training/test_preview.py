"""A first look at folders of drawn pictures: how large things are, how many, on what they lie, grey or in colour."""

import numpy as np
import pytest
from PIL import Image

from tests.pictures import apart, draw_discs
from tusk.config import DataConfig
from tusk.errors import DataError
from tusk.training.preview import THING, TILE, look_at, size_remark


def save(folder, pictures):
    files = []
    for number, pixels in enumerate(pictures):
        files.append(folder / f"{number}.png")
        Image.fromarray(pixels).save(files[-1])
    return files


def discs_of(radii, count=3, height=240, width=320, **options):
    rng = np.random.default_rng(5)
    return [draw_discs(height, width, apart(rng, height, width, radii), **options) for _ in range(count)]


def test_discs_on_an_uneven_background(tmp_path):
    preview = look_at(save(tmp_path, discs_of([15] * 12, gradient=(-25, 15))))
    assert preview.thing_size == pytest.approx(30, rel=0.15)
    assert preview.has_background and not preview.is_grey
    assert preview.per_picture == pytest.approx(12, abs=1)
    settings = preview.settings(sized=True)
    assert settings["data"]["scale"] == pytest.approx(THING / 30, rel=0.15)
    # A tile of 96 pixels shows (96 / 0.7)^2 pixels of the pictures: about three of these.
    assert preview.fullest == pytest.approx(12 * (TILE / settings["data"]["scale"]) ** 2 / (240 * 320), rel=0.2)
    assert 8 <= settings["model"]["keypoints"] <= 32


def test_places_and_sizes_are_in_the_pictures_own_pixels(tmp_path):
    """1,280 pixels wide: looked at in half."""
    discs = apart(np.random.default_rng(1), 640, 1280, [40] * 8)
    (glimpse,) = look_at(save(tmp_path, [draw_discs(640, 1280, discs)])).glimpses
    assert glimpse.scale == 0.5 and glimpse.pixels.shape == (320, 640, 3)
    assert len(glimpse.xy) == 8
    places = np.array([disc[:2] for disc in discs])
    assert np.hypot(*(glimpse.xy[:, None] - places).T).min(0).max() < 4
    np.testing.assert_allclose(glimpse.diameter, 80, rtol=0.2)


def test_things_of_two_sizes_are_both_seen(tmp_path):
    preview = look_at(save(tmp_path, discs_of([20] * 8 + [4] * 8)))
    assert preview.thing_size == pytest.approx(40, rel=0.2), "the usual thing is a large one: dust is many, but small"
    assert preview.smallest == pytest.approx(8, rel=0.3) and preview.largest == pytest.approx(40, rel=0.2)


def test_tiny_things_in_a_large_picture_are_measured_at_their_own_scale(tmp_path):
    """Discs of 10 pixels in 1,000: too small where the whole is looked at. A file that cannot be read is no obstacle,
    and what is counted in a part is said of the whole."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:700, :1000]
    pixels = np.full((700, 1000, 3), 200, np.uint8)
    for row in range(30, 700, 50):
        for column in range(30, 1000, 50):
            down, across = rng.integers(-8, 9, 2)
            pixels[(x - column - across) ** 2 + (y - row - down) ** 2 < 25] = (60, 40, 90)
    files = save(tmp_path, [pixels])
    (tmp_path / "broken.png").write_bytes(b"no picture")
    preview = look_at([tmp_path / "broken.png", *files])
    assert [one.scale for one in preview.glimpses] == [1.0]
    assert preview.thing_size == pytest.approx(10, rel=0.2)
    assert preview.per_picture == pytest.approx(14 * 20, rel=0.1)


def test_texture_has_no_background(tmp_path):
    rng = np.random.default_rng(0)
    pictures = [
        np.asarray(Image.fromarray(rng.integers(0, 256, (60, 80, 3), np.uint8)).resize((320, 240))) for _ in range(3)
    ]
    preview = look_at(save(tmp_path, pictures))
    assert not preview.has_background
    assert "scale" not in preview.settings(sized=False)["data"]
    lines = preview.sentences()
    assert len(lines) == 4 and "no even background" in lines[0] and "--keypoints" in lines[2]


def test_grey_and_colour(tmp_path):
    colours = {"base": (200, 200, 200), "colours": [(60, 60, 60)]}
    grey = discs_of([15] * 6, 2, **colours)
    files = save(tmp_path, grey)
    preview = look_at(files)
    assert preview.is_grey and preview.settings(sized=True)["data"]["grey"] is True
    files += save(tmp_path / "..", discs_of([15] * 6, 1))
    assert not look_at(files).is_grey, "one in colour is enough"


def test_a_size_that_is_given_stands(tmp_path):
    preview = look_at(save(tmp_path, discs_of([15] * 6, 1)), thing_size=60.0)
    assert preview.thing_size == 60 and preview.settings(sized=True)["data"]["scale"] == pytest.approx(
        THING / 60, rel=0.01
    )


def test_files_that_cannot_be_read_are_skipped(tmp_path):
    files = save(tmp_path, discs_of([15] * 6, 2))
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert len(look_at([*files, tmp_path / "broken.png"]).glimpses) == 2
    with pytest.raises(DataError, match="none of its pictures can be read"):
        look_at([tmp_path / "broken.png"])
    with pytest.raises(DataError, match="none of its pictures can be read"):
        look_at([])


def test_empty_pictures_are_no_error(tmp_path):
    preview = look_at(save(tmp_path, [np.full((50, 70, 3), 90, np.uint8)] * 2))
    assert not preview.has_background and preview.per_picture == 0
    assert len(preview.sentences()) == 4 and preview.settings(sized=True)["model"]["keypoints"] == 8


def test_four_sentences_and_how_to_overrule_them(tmp_path):
    lines = look_at(save(tmp_path, discs_of([15] * 12))).sentences()
    assert len(lines) == 4 and all(line.endswith(".") for line in lines)
    assert lines[0].startswith("Looked at 3 pictures, in colour: things lie on a background, about 12 in a picture")
    for flag in ("--thing-size", "--data.scale", "--keypoints"):
        assert flag in "".join(lines)


@pytest.mark.parametrize(
    ("trained_on", "said"),
    [(30, None), (45, None), (8, "3.7 times as large as"), (120, "4.0 times smaller than")],
)
def test_things_of_another_size_than_a_model_is_made_for_are_said(tmp_path, trained_on, said):
    files = save(tmp_path, discs_of([15] * 12))
    remark = size_remark(files, DataConfig(fit="tiles", scale=round(THING / trained_on, 3)))
    if said is None:
        assert remark is None
    else:
        assert remark is not None and f"looks {said} those" in remark and f"instead of {trained_on}" in remark


def test_no_size_is_said_of_texture_or_of_files_that_cannot_be_read(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert size_remark([tmp_path / "broken.png"], DataConfig(fit="tiles")) is None
    noise = np.random.default_rng(0).integers(0, 255, (240, 320, 3), np.uint8)
    assert size_remark(save(tmp_path, [noise]), DataConfig(fit="tiles", scale=0.05)) is None


def test_of_many_files_a_spread_sample_is_read(tmp_path):
    (file,) = save(tmp_path, discs_of([15], 1, height=60, width=60))
    missing = tmp_path / "missing.png"
    assert len(look_at([file] * 100).glimpses) == 24
    # From the first to the last of them: the second half is not there.
    assert len(look_at([file] * 50 + [missing] * 50).glimpses) == 12
