"""A few clicks part two kinds that one type holds; nothing else moves."""

import numpy as np
import pytest

from tests.naming.made import clusters, detections, naming
from tusk.errors import UsageError
from tusk.naming import apply_naming, named_types
from tusk.naming.assign import assign, examples_of
from tusk.naming.edits import Example, Merge, PictureKey
from tusk.naming.refit import Sample, leave_one_out, split, teach
from tusk.naming.types import edited


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


def test_no_clicks_are_refused():
    with pytest.raises(UsageError, match="click at least one"):
        teach(naming(), Sample(np.zeros(0, np.int64), np.zeros((0, 4))), 0, "", [])
