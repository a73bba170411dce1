"""Types from a few clicks or from a sample of points: class means of descriptors, no training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tusk.errors import UsageError
from tusk.naming.assign import distance, examples_of
from tusk.naming.edits import Centre, Example, Naming, Split, Teach, Vector
from tusk.naming.types import named_types

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

_ROUNDS = 10


@dataclass(frozen=True)
class Sample:
    """Points that were found in some pictures, with the named types that they have now."""

    types: Int64Array  # (N,)
    descriptors: FloatArray  # (N, C) of length 1


@dataclass(frozen=True)
class LeaveOneOut:
    """Of the clicked points, how many get their type back from the others of their type."""

    right: int
    of: int  # those that could be asked: a type needs two


def teach(naming: Naming, sample: Sample, number: int, name: str, examples: Sequence[Example]) -> Teach:
    """These points are of type `number` (the next free one, with a name, for a new type).

    The type's centre is the mean of all points that were ever clicked for it. In each other type that points were
    clicked in, everything else keeps its own mean, without what is nearer to the clicked ones. Types in which nobody
    clicked stay as they are.
    """
    if not examples:
        raise UsageError("points", "none were chosen", "click at least one")
    every = [*examples_of(naming, number), *examples]
    centre = _unit(np.array([one.descriptor for one in every]).mean(0))
    rest = []
    for source in sorted({one.source for one in examples} - {number}):
        own = sample.descriptors[sample.types == source]
        rest.append(Centre(type=source, descriptor=_stored(_rest(own, centre))))
    return Teach(type=number, name=name, examples=tuple(examples), centre=_stored(centre), rest=tuple(rest))


def split(naming: Naming, sample: Sample, number: int) -> Split:
    """A type in two: the two clusters of its points. The larger one keeps the number."""
    own = sample.descriptors[sample.types == number]
    if len(own) < 2:
        why = f"{len(own)} points of it are known, and two are needed"
        raise UsageError(f"split of type {number}", why, "look at more pictures first")
    return split_of(naming, number, own)


def split_of(naming: Naming, number: int, points: FloatArray) -> Split:
    """The same from any descriptors (N, C) of the type: of points, or of its prototypes."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if len(np.unique(points, axis=0)) < 2:
        raise UsageError(f"split of type {number}", "all of its points are the same", "there is nothing to split")
    with threadpool_limits(1):
        labels = KMeans(2, n_init=10, random_state=0).fit_predict(points)
    large, small = np.argsort(-np.bincount(labels, minlength=2), kind="stable")
    first, second = (_stored(_unit(points[labels == one].mean(0))) for one in (large, small))
    return Split(type=number, new=named_types(naming).count, centres=(first, second))


def leave_one_out(naming: Naming) -> LeaveOneOut:
    """Each clicked point against the mean of the others of its type, and the rest of the type that it came from."""
    right = total = 0
    for edit in naming.edits:
        if not isinstance(edit, Teach):
            continue
        rests = {centre.type: centre.descriptor for centre in edit.rest}
        vectors = np.array([one.descriptor for one in edit.examples])
        if len(vectors) < 2:
            continue
        for place, example in enumerate(edit.examples):
            if example.source not in rests:
                continue  # it had that type before
            others = _unit(np.delete(vectors, place, 0).mean(0))
            own = vectors[place : place + 1]
            total += 1
            right += bool(distance(own, others)[0] < distance(own, rests[example.source])[0])
    return LeaveOneOut(right, total)


def _rest(own: FloatArray, centre: FloatArray) -> FloatArray:
    """own (N, C): points of a type -> the mean of those that are nearer to it than to the centre of another."""
    if not len(own):
        return -centre
    away = distance(own, centre)
    rest = _unit(own[away >= np.median(away)].mean(0))  # the farther half is hardly of the other type
    for _ in range(_ROUNDS):
        kept = distance(own, rest) <= away
        if not kept.any():
            break
        rest = _unit(own[kept].mean(0))
    return rest


def _unit(vector: FloatArray) -> FloatArray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12))


def _stored(vector: FloatArray) -> Vector:
    return tuple(round(float(value), 5) for value in vector)
