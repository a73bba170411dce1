"""A few clicks part two kinds that one type holds; nothing else moves."""

import numpy as np
import pytest

from tests.naming.made import clusters, detections, naming, unit
from tusk.errors import UsageError
from tusk.naming import apply_naming, named_types
from tusk.naming.assign import assign, examples_of
from tusk.naming.edits import Example, Hide, Kind, Merge, PictureKey, Rename, Sort
from tusk.naming.refit import Sample, leave_one_out, sort, split, teach
from tusk.naming.types import edited, undone, words_of


def example(descriptor, source, **values):
    return Example(
        x=values.get("x", 0), y=0, source=source, descriptor=tuple(descriptor), picture=values.get("picture")
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rare", [200, 12])
def test_five_clicks_part_two_kinds(seed, rare):
    """Kinds 0 and 1 share type 0; kind 2 has its own."""
    descriptors, kinds = clusters([200, rare, 100], channels=16, spread=0.1, seed=seed)
    types = np.where(kinds == 2, 1, 0)
    chosen = np.flatnonzero(kinds == 1)[:5]
    now = naming(2)
    edit = teach(now, Sample(types, descriptors), 2, "eosinophil", [example(descriptors[place], 0) for place in chosen])
    now = edited(now, edit)
    assert named_types(now)[2].title == "eosinophil"
    moved = assign(now, types, descriptors)
    assert (moved[kinds == 1] == 2).mean() >= 0.95
    assert (moved[kinds == 0] == 0).mean() >= 0.95
    assert (moved[kinds == 2] == 1).all()
    found = leave_one_out(now)
    assert (found.right, found.of) == (5, 5)


def test_clicks_part_what_was_merged():
    descriptors, kinds = clusters([100, 100], channels=16, spread=0.1)
    now = edited(naming(2), Merge(into=0, other=1))
    types = assign(now, kinds, descriptors)
    assert set(types) == {0}
    chosen = [example(descriptors[place], 0) for place in np.flatnonzero(kinds == 1)[:5]]
    now = edited(now, teach(now, Sample(types, descriptors), 2, "", chosen))
    assert (assign(now, kinds, descriptors) == np.where(kinds == 1, 2, 0)).all()


def test_more_clicks_add_to_the_same_type():
    descriptors, kinds = clusters([100, 100], channels=16, spread=0.1)
    now = naming(2)
    sample = Sample(np.zeros(200, np.int64), descriptors)
    places = np.flatnonzero(kinds == 1)
    now = edited(now, teach(now, sample, 2, "b", [example(descriptors[places[0]], 0)]))
    assert leave_one_out(now).of == 0  # one by itself cannot be asked
    now = edited(now, teach(now, sample, 2, "", [example(descriptors[place], 0) for place in places[1:4]]))
    assert len(examples_of(now, 2)) == 4
    now = edited(now, Merge(into=1, other=2))
    assert len(examples_of(now, 1)) == 4 and examples_of(now, 2) == []


def test_what_was_clicked_keeps_its_type_in_its_picture():
    """Even where the means would say otherwise."""
    descriptors, _ = clusters([10], spread=0.02)
    key = PictureKey(name="a", sha256="b" * 64)
    found = detections([0] * 5, descriptors[:5])
    odd = Example(x=18, y=20, source=0, descriptor=tuple(-descriptors[0]), picture=key)
    now = naming(2)
    now = edited(now, teach(now, Sample(found.type, descriptors[:5]), 1, "", [odd]))
    assert apply_naming(found, now, sha256="b" * 64).type.tolist() == [0, 1, 0, 0, 0]
    assert apply_naming(found, now, sha256="c" * 64).type.tolist() == [0] * 5


def test_a_split_parts_two_kinds_and_the_larger_one_keeps_the_number():
    descriptors, kinds = clusters([50, 150], channels=16, spread=0.1)
    types = np.zeros(200, np.int64)
    now = naming(2)
    now = edited(now, split(now, Sample(types, descriptors), 0))
    assert (assign(now, types, descriptors) == np.where(kinds == 1, 0, 2)).all()
    with pytest.raises(UsageError, match="two are needed"):
        split(now, Sample(types, descriptors), 1)
    same = np.repeat(descriptors[:1], 5, 0)
    with pytest.raises(UsageError, match="the same"):
        split(naming(2), Sample(np.zeros(5, np.int64), same), 0)


@pytest.mark.parametrize("seed", range(3))
def test_all_else_is_sorted_into_the_kinds_that_were_clicked(seed):
    """Three kinds in six types, of which the clicks touch some only; one click of the fifteen is wrong."""
    descriptors, groups = clusters([150, 100, 80, 60, 60, 40], channels=16, spread=0.1, seed=seed)
    rng = np.random.default_rng(seed)
    descriptors = unit(descriptors + 3 * unit(rng.standard_normal((3, 16)))[groups // 2])
    kinds = groups // 2
    now = naming(6)
    for kind in range(3):
        rows = rng.choice(np.flatnonzero(kinds == kind), 5, replace=False)
        if kind == 0:
            rows[0] = np.flatnonzero(kinds == 1)[0]
        types = assign(now, groups, descriptors)
        clicks = [example(descriptors[row], int(types[row])) for row in rows]
        now = edited(now, teach(now, Sample(types, descriptors), 6 + kind, f"kind {kind}", clicks))
    before = assign(now, groups, descriptors)
    now = edited(now, sort(now, Sample(before, descriptors)))
    assert set(named_types(now).types) == {6, 7, 8} and len(set(before)) > 3
    assert (assign(now, groups, descriptors) == 6 + kinds).mean() >= 0.97
    assert words_of(now.edits[-1]) == "6 other types are sorted into 3 kinds"
    assert set(named_types(undone(now)).types) == set(range(9))


def test_types_that_were_named_without_a_click_or_are_hidden_stay():
    descriptors, kinds = clusters([60, 60, 60, 60], channels=16, spread=0.1)
    now = naming(4)
    for edit in (Rename(type=0, name="a"), Rename(type=1, name="b"), Hide(type=2)):
        now = edited(now, edit)
    now = edited(now, sort(now, Sample(kinds, descriptors)))
    after = assign(now, kinds, descriptors)
    assert (after[kinds < 3] == kinds[kinds < 3]).all() and set(after[kinds == 3]) <= {0, 1}
    with pytest.raises(UsageError, match="nothing to sort"):
        sort(now, Sample(after, descriptors))


def test_what_was_clicked_is_not_sorted_away():
    descriptors, _ = clusters([10, 10], spread=0.02)
    key = PictureKey(name="a", sha256="b" * 64)
    found = detections([0] * 5 + [1] * 5, descriptors[5:15])
    now = edited(naming(3), Rename(type=1, name="b"))
    clicks = [example(descriptors[0], 0), example(descriptors[1], 0)]
    odd = Example(x=18, y=20, source=0, descriptor=tuple(descriptors[15]), picture=key)  # looks like the others
    now = edited(now, teach(now, Sample(found.type, descriptors[5:15]), 3, "a", [*clicks, odd]))
    now = edited(now, sort(now, Sample(found.type, descriptors[5:15])))
    assert apply_naming(found, now, sha256="b" * 64).type[1] == 3


def test_sorting_needs_two_kinds():
    descriptors, kinds = clusters([9, 9], channels=8)
    with pytest.raises(UsageError, match="points are known of 0 types that are named or clicked, and two are needed"):
        sort(naming(2), Sample(kinds, descriptors))
    now = edited(naming(3), Rename(type=0, name="a"))
    with pytest.raises(UsageError, match="of 1 types that are named"):
        sort(now, Sample(kinds, descriptors))
    bad = Sort(kinds=(Kind(type=0, weights=(1.0,), bias=0), Kind(type=1, weights=(1.0,), bias=0)), others=(1,))
    with pytest.raises(UsageError, match="a kind and none"):
        edited(naming(2), bad)


def test_no_clicks_are_refused():
    with pytest.raises(UsageError, match="click at least one"):
        teach(naming(), Sample(np.zeros(0, np.int64), np.zeros((0, 4))), 0, "", [])
