"""What is said before a training starts."""

from pathlib import Path

import pytest
from PIL import Image

from tusk.config import Config
from tusk.training.overview import open_overview, write_skipped


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(30):
        Image.new("RGB", (80, 40) if number % 2 else (160, 120)).save(folder / f"{number}.png")
    return folder


def seen(source: Path | None, **data):
    values = {"data": {"source": source, "size": 20, **data}, "model": {"window": 5, "keypoints": 3}}
    return open_overview(Config.model_validate(values))[1]


def test_a_folder_of_two_sizes(photos):
    overview = seen(photos)
    assert overview.pictures == overview.images == 30
    assert overview.cropped == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert (overview.scale.least, overview.scale.greatest) == (20 / 120, 20 / 40)
    assert (overview.thing.least, overview.thing.greatest) == (10, 30)
    first, second, third = overview.lines()
    assert first == "Pictures: 30 read; none skipped"
    assert "38% of the picture is cropped away" in second and "scaled by 0.33 (0.17 to 0.50)" in second
    assert "about 15 (10 to 30) pixels across in the picture (--model.window 5)" in third
    assert write_skipped(overview, photos) is None and not (photos / "skipped.csv").exists()


@pytest.mark.parametrize(("fit", "images"), [("letterbox", 30), ("tiles", 15 * (8 * 6) + 15 * (4 * 2))])
def test_what_keeps_all_says_so(photos, fit, images):
    overview = seen(photos, fit=fit)
    assert (overview.cropped, overview.images, overview.pictures) == (0, images, 30)
    assert "nothing is cropped away" in overview.lines()[1]
    if fit == "tiles":
        assert "scaled by 1.00" in overview.lines()[1]
        assert f"{images} 20-pixel tiles of photos, 3 keypoints in each, 10 types" in overview.lines()[2]


def test_few_pictures_are_warned_of(photos):
    assert "Warning: only 10 pictures: " in seen(f"{photos}/1?.png").lines()[3]
    assert len(seen(f"{photos}/[12]*.png").lines()) == 3, "21 are enough"
    tiled = seen(photos / "0.png", fit="tiles").lines()[3]
    assert tiled.startswith("Warning: only 1 picture (cut into 48 tiles): ")


def test_many_reasons_are_counted_and_listed(photos):
    for number in range(5):
        (photos / f"empty{number}.png").touch()
    whole = (photos / "0.png").read_bytes()
    (photos / "cut.png").write_bytes(whole[:60])
    (photos / "text.png").write_text("text")
    overview = seen(photos)
    listed = write_skipped(overview, photos)
    line = overview.lines(listed)[0]
    assert line.startswith("Pictures: 30 read; 7 skipped (the file is empty: 5, ") and line.endswith(str(listed))
    assert len(listed.read_text().splitlines()) == 8


def test_images_that_tusk_makes():
    lines = open_overview(Config.model_validate({"data": {"dataset": "digits", "size": 80}}))[1].lines()
    assert len(lines) == 3 and lines[0].startswith("Images: ") and "nothing is cropped away; scaled by 1.00" in lines[1]
