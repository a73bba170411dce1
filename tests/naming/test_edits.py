"""The list of edits, and the types that follow from it."""

import json

import pytest
from pydantic import ValidationError

from tests.naming.made import naming
from tusk.errors import UsageError
from tusk.naming import named_types
from tusk.naming.edits import Hide, Merge, Naming, Recolour, Rename, Split
from tusk.naming.types import edited, redone, undone, words_of


def after(*edits, types=4):
    now = naming(types)
    for edit in edits:
        now = edited(now, edit)
    return now


def test_names_colours_merges_and_hidden_types():
    now = after(
        Rename(type=1, name="  white   cell "), Merge(into=0, other=1), Hide(type=2), Recolour(type=3, colour="#102030")
    )
    state = named_types(now)
    assert state[0].title == "white cell" and state[0].merged == (1,)
    assert state.visible == (0, 3) and 1 not in state
    assert state.colours[3] == (16, 32, 48)
    assert state.titles == ("white cell", "type 1", "type 2", "type 3")
    assert state.find("White Cell") == 0 == state.find("0")


def test_undo_and_redo_go_back_and_forth():
    now = after(Rename(type=0, name="a"), Merge(into=0, other=1))
    back = undone(undone(now))
    assert back.edits == () and named_types(back).titles[0] == "type 0"
    assert redone(redone(back)).edits == now.edits
    assert edited(undone(now), Hide(type=2)).undone == ()
    with pytest.raises(UsageError, match="nothing to undo"):
        undone(naming())
    with pytest.raises(UsageError, match="nothing was undone"):
        redone(naming())


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([Merge(into=1, other=1)], "itself"),
        ([Merge(into=0, other=1), Rename(type=1, name="x")], "no such type"),
        ([Rename(type=0, name="x"), Rename(type=1, name="X")], "merge the two"),
        ([Rename(type=0, name="type 2")], "by its number"),
        ([Split(type=0, new=7, centres=((1.0,), (0.0,)))], "next free number is 4"),
        ([Hide(type=9)], "no such type"),
    ],
)
def test_what_makes_no_sense_is_refused(edits, words):
    with pytest.raises(UsageError, match=words):
        after(*edits)


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "\u202eabc", "x" * 61, "\ud800"])
def test_names_are_plain_text(name):
    with pytest.raises(ValidationError):
        Rename(type=0, name=name)


def test_what_is_written_is_read_again():
    now = after(Rename(type=0, name="<b>ö</b>"), Split(type=0, new=4, centres=((1.0, 0.0), (0.0, 1.0))))
    assert Naming.model_validate_json(now.model_dump_json()) == now
    values = json.loads(now.model_dump_json())
    values["edits"][0]["more"] = 1
    with pytest.raises(ValidationError):
        Naming.model_validate(values)
    assert [words_of(edit) for edit in now.edits] == [
        "type 0 is called '<b>ö</b>'",
        "type 0 is split into types 0 and 4",
    ]
