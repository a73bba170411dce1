"""Types against the truth, where there is any: which keypoint lies on which thing, and what that thing is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Truth
from tusk.evaluation.localisation import assign_types, match_points
from tusk.report.predictions import Predictions
from tusk.report.sample import Sample

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True)
class LabelTable:
    """One labelling of the things (class, or an attribute), for every keypoint."""

    title: str
    names: tuple[str, ...]
    of_keypoint: IntArray  # (N, K): an index into the names, -1 where the keypoint lies on nothing
    confusion: IntArray  # (M, names + 1): keypoints of each type on each class; the last column on nothing
    class_of_type: IntArray  # (M,): the class that each type is assigned to, -1 for none
    things: int
    found: int  # things with a keypoint on them
    right: int  # of those: a keypoint whose type is assigned to the thing's class


def label_tables(predictions: Predictions, types: int, window: int) -> tuple[LabelTable, ...]:
    """By class where the truth has classes, otherwise by each attribute; nothing where it has neither."""
    truths = predictions.sample.truths
    if not truths:
        return ()
    on = [_things(truth, points, window) for truth, points in zip(truths, predictions.xy.numpy(), strict=True)]
    on_thing = np.where(predictions.found.numpy(), np.stack(on), -1)  # (N, K)
    return tuple(
        _label_table(title, names, values, on_thing, predictions, types)
        for title, names, values in _labellings(predictions.sample)
    )


def _labellings(sample: Sample) -> Iterator[tuple[str, tuple[str, ...], list[IntArray]]]:
    """Title, names, and the values of the things of each image."""
    truths = sample.truths
    classes = [truth.classes for truth in truths if truth.classes is not None]
    if sample.class_names and len(classes) == len(truths):
        yield "class", sample.class_names, classes
        return
    for name, first in truths[0].attributes.items():
        if all(name in truth.attributes for truth in truths):
            yield name, first.names, [truth.attributes[name].values for truth in truths]


def _things(truth: Truth, points: FloatArray, window: int) -> IntArray:
    """points (K, 2) -> (K,): the thing that each lies on, -1 for none.

    With masks of the things: the one with the nearest pixel, no further off than a quarter of the network's window (the
    middle of a bent thing is not on it). Otherwise one to one by boxes of the things' mean size, or,
    where boxes are of something else (faces have landmarks), of the network's window.
    """
    on = np.full(len(points), -1, np.int64)
    if truth.mask is not None and truth.attributes:
        rows, columns = np.nonzero(truth.mask)
        if len(rows) and len(points):
            apart = np.hypot(points[:, :1] - columns, points[:, 1:] - rows)  # (K, pixels)
            nearest = apart.argmin(1)
            near = apart.min(1) <= max(1.0, window / 4)
            on[near] = truth.mask[rows[nearest], columns[nearest]][near].astype(np.int64) - 1
        return on
    if truth.points is None:
        return on
    side = float(window)
    if truth.boxes is not None and len(truth.boxes) == len(truth.points) > 0:
        side = float((truth.boxes[:, 2:] - truth.boxes[:, :2]).mean())
    visible = np.nonzero(np.isfinite(truth.points).all(1))[0]
    if len(visible) and len(points):
        ours, theirs = match_points(points, truth.points[visible], side)
        on[ours] = visible[theirs]
    return on


def _label_table(
    title: str, names: tuple[str, ...], values: list[IntArray], on: IntArray, predictions: Predictions, types: int
) -> LabelTable:
    labels, there = predictions.label.numpy(), predictions.found.numpy()
    of_keypoint = np.full(on.shape, -1, np.int64)
    for image, own in enumerate(values):
        hit = (on[image] >= 0) & (on[image] < len(own))
        of_keypoint[image, hit] = own[on[image, hit]]
    confusion = np.zeros((types, len(names) + 1), np.int64)
    np.add.at(confusion, (labels[there], of_keypoint[there]), 1)  # -1 is the last column
    assigned = np.where(confusion[:, :-1].any(1), assign_types(confusion[:, :-1]), -1)  # on nothing, it has no class
    found = right = 0
    for image in range(len(values)):
        hit = of_keypoint[image] >= 0
        found += len(set(on[image, hit].tolist()))
        agrees = hit & (assigned[labels[image]] == of_keypoint[image])
        right += len(set(on[image, agrees].tolist()))
    things = sum(len(own) for own in values)
    return LabelTable(title, names, of_keypoint, confusion, assigned, things, found, right)
