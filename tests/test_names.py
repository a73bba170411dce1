"""Names that may hold anything survive tables and JSON, and lead nowhere."""

import csv
import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.names import as_text, csv_line, from_cell, from_text, path_inside, short_name

BYTES = os.fsdecode(b"caf\xe9 \xff.png")
NAMES = [
    "plain.png", "a b.png", "a,b.png", "a;b.png", 'a"b.png', '"', "a\nb.png", "a\rb.png", "a\r\nb", "=1+1.png", "+a",
    "-a.png", "@a", "'a", "''=a", "\t=a", " =a", "＝a", BYTES, "\\xff.png", "\\x5c", "\\\\xff", "\\" + BYTES, "\\u12ab",
    "é图", "\u2028", "-5", "+1.5", "-5e3", "=cmd|' /C calc'!A0", "a\x1b[2J", "a|=b", "",
]  # fmt: skip
ANY = st.lists(
    st.sampled_from(["=", "'", '"', "\\", "x", "f", "5", "c", "u", ",", ";", "\n", "\r", " ", "-", "\udcff", "\udc80"])
    | st.characters(codec="utf-8", exclude_characters="\0")
).map("".join)


def read(line):
    rows = list(csv.reader(io.StringIO(line.decode("utf-8"), newline=""), strict=True))
    assert len(rows) == 1
    return rows[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_one_row_no_cell_is_a_formula_and_the_name_comes_back(name):
    cells = read(csv_line([name, "1", "-0.5"]))
    assert len(cells) == 3 and cells[1:] == ["1", "-0.5"]
    assert from_cell(cells[0]) == name
    if cells[0][:1] in tuple("=+-@\t\r＝"):
        float(cells[0])  # nothing but a number
    assert from_text(as_text(name)) == name
    as_text(name).encode("utf-8")


@settings(deadline=None)
@given(st.lists(ANY, min_size=1, max_size=4))
def test_any_names_come_back(names):
    cells = read(csv_line([*names, "end"]))
    assert [from_cell(cell) for cell in cells[:-1]] == names and cells[-1] == "end"
    assert [from_text(as_text(name)) for name in names] == names


def test_usual_names_are_written_as_they_are():
    assert csv_line(["Größe 图 (2).png", "sub/deep.tif", "-1.25"]) == "Größe 图 (2).png,sub/deep.tif,-1.25\n".encode()
    assert csv_line(["=a.png", BYTES]) == b"'=a.png,caf\\xe9 \\xff.png\n"


def test_names_of_other_files_stay_inside_and_are_never_too_long():
    assert path_inside("sub/a.png", ".png").as_posix() == "sub/a.png.png"
    out = [path_inside(label, ".png").as_posix() for label in ("../a.png", "_/a.png", "/a.png", "a.png", "../../a.png")]
    assert len(set(out)) == 5 and not any(".." in place.split("/") or place.startswith("/") for place in out)
    long = [path_inside(f"{'é' * 120}{ending}", ".png").name for ending in (".png", "x.png", "xx.png", "xxx.png.gif")]
    assert len(set(long)) == 4 and all(len(os.fsencode(name)) <= 255 and name.startswith("é" * 110) for name in long)
    assert short_name("x" * 255) == "x" * 255 and len(short_name("x" * 300, 200)) == 200
