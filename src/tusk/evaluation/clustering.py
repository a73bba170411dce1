"""Types as clusters: how well they agree with the shape, colour and size of the objects that they are found on.

As in the paper, a type is assigned the value that most of its objects have, for each attribute on its own: several
types may have the same one. With many types that is easily high, so the accuracy one to one is given beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from tusk.data.dataset import Truth

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating]

# Those that the paper scores, where a dataset has them; CLEVR's material is not among them.
SCORED = ("shape", "color", "size")


@dataclass(frozen=True)
class Matched:
    """The objects of one image, and the types of the keypoints that they are matched with."""

    types: Int64Array  # (n,) -1 where no keypoint is matched
    values: Int64Array  # (n, A) one column for each attribute


@dataclass(frozen=True)
class Accuracy:
    """Shares of the matched objects whose type is assigned the right value."""

    name: str
    many_to_one: float
    one_to_one: float | None  # None where there are more types than values, so that it could not be high


@dataclass(frozen=True)
class AttributeFigures:
    """Accuracies over matched objects, and how many are matched."""

    attributes: tuple[Accuracy, ...]
    together: Accuracy  # all attributes at once: types against the combinations that occur
    matched: float  # share of all objects
    objects: int


def scored_names(truth: Truth) -> tuple[str, ...]:
    """The attributes of a dataset that are scored."""
    return tuple(name for name in SCORED if name in truth.attributes)


def matched_objects(truth: Truth, labels: Int64Array, keypoints: Int64Array) -> Matched:
    """labels (K,) the keypoints' types; keypoints (n,) that of each object or -1. Hidden objects are left out."""
    names = scored_names(truth)
    values = np.stack([truth.attributes[name].values for name in names], 1)  # (n, A)
    keypoints = np.concatenate([keypoints, np.full(max(0, len(values) - len(keypoints)), -1)])[: len(values)]
    types = np.where(keypoints >= 0, labels[np.maximum(keypoints, 0)], -1)
    shown = visible(truth)
    return Matched(types[shown].astype(np.int64), values[shown].astype(np.int64))


def visible(truth: Truth) -> npt.NDArray[np.bool_]:
    """(n,): whether a thing is visible at all; others are not scored."""
    count = thing_count(truth)
    if truth.mask is not None:
        pixels = np.bincount(truth.mask.ravel(), minlength=count + 1)[1 : count + 1]
        return np.asarray(pixels > 0)
    if truth.points is not None:
        return np.asarray(~np.isnan(truth.points).any(1))
    return np.ones(count, bool)


def thing_count(truth: Truth) -> int:
    """How many things the truth speaks of, hidden ones too."""
    columns = [attribute.values for attribute in truth.attributes.values()]
    for column in (*columns, truth.classes, truth.points, truth.boxes):
        if column is not None:
            return len(column)
    return 0 if truth.mask is None else int(truth.mask.max())


def match_inside(truth: Truth, xy: FloatArray, found: npt.NDArray[np.bool_]) -> Int64Array:
    """xy (K, 2), found (K,) -> (n,): the keypoint of each thing, or -1: for networks that give points alone.

    A keypoint may be matched with a thing in whose mask it lies (in whose box, where there are no masks). As many pairs
    as can be, one to one, and among those the nearest to the things' centres.
    """
    count = thing_count(truth)
    chosen = np.full(count, -1, np.int64)
    inside = _inside(truth, xy, count) & found[:, None]  # (K, n)
    if not inside.any():
        return chosen
    apart = np.zeros(inside.shape)
    if truth.points is not None:
        apart = np.hypot(*np.moveaxis(xy[:, None] - np.nan_to_num(truth.points)[None], -1, 0))
    # A pair more outweighs any gain in distance.
    value = np.where(inside, 2 - apart / (1 + apart.max()) / count, 0.0)
    rows, columns = linear_sum_assignment(value, maximize=True)
    kept = inside[rows, columns]
    chosen[columns[kept]] = rows[kept]
    return chosen


def _inside(truth: Truth, xy: FloatArray, count: int) -> npt.NDArray[np.bool_]:
    """(K, n)."""
    if truth.mask is not None:
        height, width = truth.mask.shape
        column, row = np.rint(np.nan_to_num(xy, nan=-1.0)).astype(np.int64).T
        on = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        label = np.where(on, truth.mask[row.clip(0, height - 1), column.clip(0, width - 1)], 0)
        return np.asarray(label[:, None] == np.arange(1, count + 1))
    if truth.boxes is None:
        return np.zeros((len(xy), count), bool)
    return np.asarray(((xy[:, None] >= truth.boxes[None, :, :2]) & (xy[:, None] <= truth.boxes[None, :, 2:])).all(-1))


def attribute_figures(
    parts: Sequence[Matched], names: Sequence[str], value_counts: Sequence[int], type_count: int
) -> AttributeFigures:
    """parts: one for each image; names and value_counts: of the attributes, in the order of the columns."""
    types = np.concatenate([part.types for part in parts])
    values = np.concatenate([part.values for part in parts])
    is_matched = types >= 0
    found, of_found = types[is_matched], values[is_matched]
    attributes = tuple(
        _accuracy(name, found, of_found[:, column], type_count, count)
        for column, (name, count) in enumerate(zip(names, value_counts, strict=True))
    )
    # Combinations are numbered over all objects, so that what is never found is still asked for.
    combinations, number = np.unique(values, axis=0, return_inverse=True)
    number = number.reshape(-1)[is_matched]
    confusion = _confusion(found, number, type_count, max(len(combinations), 1))
    together = Accuracy("all together", _many_to_one(confusion), _one_to_one(confusion))
    return AttributeFigures(attributes, together, float(is_matched.mean()) if len(types) else 0.0, len(types))


def _accuracy(name: str, types: Int64Array, values: Int64Array, type_count: int, value_count: int) -> Accuracy:
    confusion = _confusion(types, values, type_count, value_count)
    return Accuracy(name, _many_to_one(confusion), _one_to_one(confusion) if type_count <= value_count else None)


def _confusion(types: Int64Array, values: Int64Array, type_count: int, value_count: int) -> Int64Array:
    pairs = np.bincount(types * value_count + values, minlength=type_count * value_count)
    return pairs.reshape(type_count, value_count)


def _many_to_one(confusion: Int64Array) -> float:
    return float(confusion.max(1).sum() / max(confusion.sum(), 1))


def _one_to_one(confusion: Int64Array) -> float:
    rows, columns = linear_sum_assignment(confusion, maximize=True)
    return float(confusion[rows, columns].sum() / max(confusion.sum(), 1))
