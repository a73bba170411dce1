"""Types from a few clicks or from a sample of points: class means of descriptors, no training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tusk.errors import UsageError
from tusk.naming.assign import distance, examples_of
from tusk.naming.edits import Centre, Correct, Example, Kind, Naming, Sort, Split, Teach, Vector
from tusk.naming.types import named_types

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

_ROUNDS = 10
_SHRINK = 0.3  # of the covariance to a multiple of the identity: clicks are few, and points may be, too


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


def sort(naming: Naming, sample: Sample) -> Sort:
    """There are no kinds but those that have a name, clicks, or points that somebody added: all else is one of them.

    A kind's centre is the median of the points that were clicked for it (one wrong click then does no harm), or of all
    of its points where none was. Distances are Mahalanobis's: directions in which all points differ much, such as light
    and place, count less. Points of kinds that were clicked are sorted, too; those of hidden types and of types that
    were named without a click stay.
    """
    state = named_types(naming)
    clicked = {number: examples_of(naming, number) for number in state.visible}
    placed = {one.type for edit in naming.edits if isinstance(edit, Correct) for one in edit.added}
    chosen = [number for number in state.visible if state[number].name or clicked[number] or number in placed]
    whitening = _whitening(sample.descriptors)  # (C, C)
    kinds = []
    for number in chosen:
        points = np.array([one.descriptor for one in clicked[number]] or sample.descriptors[sample.types == number])
        if len(points):
            centre = np.median(points @ whitening, axis=0)
            bias = round(-float(centre @ centre) / 2, 5)
            kinds.append(Kind(type=number, weights=_stored(whitening @ centre), bias=bias))
    if len(kinds) < 2:
        why = f"points are known of {len(kinds)} types that are named or clicked, and two are needed"
        raise UsageError("sort", why, "name some types, or click points and say what they are")
    others = tuple(number for number in state.visible if number not in chosen)
    again = tuple(one.type for one in kinds if clicked[one.type])
    if not others and not again:
        raise UsageError(
            "sort", "every type has a name, so that there is nothing to sort", "merge types, or click points"
        )
    return Sort(kinds=tuple(kinds), others=others, again=again)


def _whitening(descriptors: FloatArray) -> FloatArray:
    """descriptors (N, C) -> (C, C): descriptors times it vary by about 1 in every direction."""
    channels = descriptors.shape[1]
    away = descriptors - descriptors.mean(0) if len(descriptors) else descriptors
    spread = away.T @ away / max(1, len(descriptors))
    mean = float(np.trace(spread)) / channels
    if mean < 1e-12:
        return np.eye(channels)
    shrunk = (1 - _SHRINK) * spread + _SHRINK * mean * np.eye(channels)
    return np.asarray(np.linalg.cholesky(np.linalg.inv(shrunk)), np.float64)


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
