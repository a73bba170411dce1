"""Files that are made of pictures: each its own, inside the folder, on every system."""

from pathlib import PurePath

from tests.export.results import PICTURES
from tusk.export.places import file_places

HOSTILE = [*PICTURES, "../../etc/x.png", "/etc/x.png", "x" * 250 + ".png", "con:.png", "a\\b.png", "a.b.png", "A.PNG"]


def test_every_picture_has_a_file_of_its_own_inside():
    for ending in (".txt", ".geojson"):
        places = file_places(HOSTILE, ending)
        assert len({str(place).casefold() for place in places}) == len(HOSTILE)
        for place in places:
            assert not place.is_absolute() and ".." not in place.parts and place.name.endswith(ending)
            assert len(place.name.encode()) <= 255
            assert not set('\n\x07:\\"\udcff') & set(str(place))


def test_plain_names_stay():
    places = file_places(["a.png", "sub/b.c.tif", "Größe.jpg"], ".txt")
    assert places == [PurePath("a.txt"), PurePath("sub/b.c.txt"), PurePath("Größe.txt")]
    assert [str(place) for place in file_places(["a.png", "a.jpg"], ".txt")] == ["a.png.txt", "a.jpg.txt"]
