"""Which files a source stands for, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tusk.data.sources import find_files, natural_key
from tusk.errors import DataError


def test_folders_are_searched_below_and_in_natural_order(tmp_path: Path) -> None:
    wanted = ["a1/x.PNG", "a2/img2.jpg", "a2/img10.webp", "a10/x.gif", "B2.tiff", "b10.bmp", "bare"]
    for name in [*wanted, ".hidden.png", ".cache/x.png", "a1/._x.png"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name, format="PNG")
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "README").write_text("nothing")
    (tmp_path / "a1" / "circle").symlink_to(tmp_path)
    source = find_files(tmp_path)
    assert [source.label(file) for file in source.files] == wanted


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_numbers_in_names_are_counted(numbers: list[int]) -> None:
    names = [f"shot {number}b.jpg" for number in numbers]
    assert sorted(names, key=natural_key) == [f"shot {number}b.jpg" for number in sorted(numbers)]


def test_a_list_keeps_its_order_and_drops_repetitions(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\ufeffb.png\n\n# a remark\n  ./a.png\r\nb.png\nsub/c d.png", encoding="utf-8")
    source = find_files(tmp_path / "list.txt")
    assert [source.label(file) for file in source.files] == ["b.png", "a.png", "sub/c d.png"]
    assert (source.name, source.root) == ("list", tmp_path)


def test_a_pattern_and_its_root(tmp_path: Path) -> None:
    (tmp_path / "day1" / "raw").mkdir(parents=True)
    for name in ("10.x", "9.x", "8.y"):
        (tmp_path / "day1" / "raw" / name).touch()
    source = find_files(f"{tmp_path}/day?/**/*.x")
    assert [source.label(file) for file in source.files] == ["day1/raw/9.x", "day1/raw/10.x"]
    assert (source.name, source.root) == (tmp_path.name, tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file or folder; check the path"):
        find_files(tmp_path / "nowhere")
