"""MNIST-Hard's measure: are things found, and are their types right?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LocalisationFigures:
    """Shares of all true things, from 0 to 1."""

    localisation: float  # found by a box that overlaps its own by IoU >= 0.5, one to one
    classification: float  # of the found ones: the type's class is the true class
    both: float
    class_of_type: tuple[int, ...]  # the class that each type is assigned, -1 for none
    things: int


def box_iou(first: FloatArray, second: FloatArray, side: float) -> FloatArray:
    """IoU of boxes of one size centred on the points: (P, 2), (Q, 2) -> (P, Q)."""
    apart = np.abs(first[:, None] - second[None])  # (P, Q, 2)
    overlap = np.clip(side - apart, 0, None).prod(-1)
    iou: FloatArray = overlap / (2 * side**2 - overlap)
    return iou


def match_points(found: FloatArray, true: FloatArray, side: float, least: float = 0.5) -> tuple[IntArray, IntArray]:
    """Pairs (indices into found, into true): one to one, IoU at least `least`, as many and as good as can be."""
    iou = box_iou(found, true, side)
    value = np.where(iou >= least, 1 + iou, 0)  # a pair more outweighs any gain in overlap
    rows, columns = linear_sum_assignment(value, maximize=True)
    kept = iou[rows, columns] >= least
    return rows[kept], columns[kept]


def assign_types(confusion: IntArray) -> IntArray:
    """Which class each type is assigned, from counts (types, classes) -> (types,).

    One to one where there are no more types than classes (-1 for a type that is left over), otherwise each type
    gets its most frequent class.
    """
    types, classes = confusion.shape
    if types > classes:
        return np.asarray(confusion.argmax(1), np.int64)
    rows, columns = linear_sum_assignment(confusion, maximize=True)
    assigned = np.full(types, -1, np.int64)
    assigned[rows] = columns
    return assigned


def localisation_figures(
    found: FloatArray,
    types: IntArray,
    true: list[FloatArray],
    classes: list[IntArray],
    *,
    type_count: int,
    class_count: int,
    side: float = 20.0,
) -> LocalisationFigures:
    """found (N, K, 2) and types (N, K) of N images against the points and classes that are true in each."""
    confusion = np.zeros((type_count, class_count), np.int64)
    things = 0
    for points, labels, true_points, true_classes in zip(found, types, true, classes, strict=True):
        ours, theirs = match_points(points, true_points, side)
        np.add.at(confusion, (labels[ours], true_classes[theirs]), 1)
        things += len(true_points)
    assigned = assign_types(confusion)
    localised = int(confusion.sum())
    right = int(sum(confusion[type_, class_] for type_, class_ in enumerate(assigned) if class_ >= 0))
    return LocalisationFigures(
        localisation=localised / max(things, 1),
        classification=right / max(localised, 1),
        both=right / max(things, 1),
        class_of_type=tuple(int(value) for value in assigned),
        things=things,
    )
