"""Which named type each point is of: the model's own type, moved by every edit in its turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tusk.naming.edits import Example, Merge, Naming, NamingEdit, Sort, Split, Teach

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

Pinned = Mapping[int, Sequence[int]]  # the number of an edit -> rows that were clicked in it


def assign(naming: Naming, types: Int64Array, descriptors: FloatArray, pinned: Pinned | None = None) -> Int64Array:
    """types (N,) of the model, descriptors (N, C) of length 1 -> (N,) named types, hidden ones too."""
    now = np.array(types, np.int64)
    fixed: list[int] = []  # rows that were clicked so far
    for number, edit in enumerate(naming.edits):
        kept = now[fixed]
        move(edit, now, descriptors)
        if isinstance(edit, Sort):
            stays = ~np.isin(kept, edit.others)
            now[np.array(fixed, np.int64)[stays]] = kept[stays]
        if isinstance(edit, Teach) and pinned is not None:
            rows = list(pinned.get(number, ()))
            now[rows] = edit.type
            fixed += rows
    return now


def move(edit: NamingEdit, now: Int64Array, descriptors: FloatArray) -> None:
    """What one edit does to the types (N,) of points."""
    if isinstance(edit, Merge):
        now[now == edit.other] = edit.into
    elif isinstance(edit, Split):
        own = np.flatnonzero(now == edit.type)
        first, second = (distance(descriptors[own], centre) for centre in edit.centres)
        now[own[second < first]] = edit.new
    elif isinstance(edit, Teach):
        for rest in edit.rest:
            own = np.flatnonzero(now == rest.type)
            nearer = distance(descriptors[own], edit.centre) < distance(descriptors[own], rest.descriptor)
            now[own[nearer]] = edit.type
    elif isinstance(edit, Sort):
        weights, biases = np.array([one.weights for one in edit.kinds]), np.array([one.bias for one in edit.kinds])
        own = np.flatnonzero(np.isin(now, (*edit.others, *edit.again)))
        if len(own) and descriptors.shape[1] == weights.shape[1]:
            nearest = (descriptors[own] @ weights.T + biases).argmax(1)
            now[own] = np.array([one.type for one in edit.kinds])[nearest]


def distance(descriptors: FloatArray, centre: Sequence[float] | FloatArray) -> FloatArray:
    """descriptors (N, C) -> (N,): squared distance from a centre; of another length, as far as can be."""
    if descriptors.shape[1] != len(centre):
        return np.full(len(descriptors), np.inf)
    return np.asarray(np.square(descriptors - np.asarray(centre)).sum(1))


def examples_of(naming: Naming, number: int) -> list[Example]:
    """All points that were clicked to be of this type, through all merges since."""
    found: list[tuple[int, Example]] = []
    for edit in naming.edits:
        if isinstance(edit, Merge):
            found = [(edit.into if now == edit.other else now, example) for now, example in found]
        elif isinstance(edit, Teach):
            found += [(edit.type, example) for example in edit.examples]
    return [example for now, example in found if now == number]
