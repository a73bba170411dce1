"""Five clicks for each kind of blood cell, drawn at random: what they make of the types. For `naming.py`.

Clicks are points in boxes of BCCD's labels, five of each class. They are given to `tusk.naming.refit` as the page gives
them: one kind after the other, in any order, and then "There are no other kinds". What follows is scored on pictures in
which nobody clicked: a point's class is that of the smallest box around it, and "balanced" is the mean over the
classes of how many of their points have a type of that name.

Four figures beside it. The types alone can be named by the same clicks: a type is what most clicks in it say, and none
where nobody clicked. Or by all labels at once, each by the class that it has the largest share of, which nobody who
clicks can do. After the clicks, before the rest is sorted, types that nobody named have the names of all labels, too.
And what all labels can do: a logistic regression on the descriptors, learnt from all labels of one half of the pictures
and scored on the other. Boxes overlap, and many cells have none, so that not every point in a white cell's box is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import tusk
from blood_cells import Box, read_boxes
from tusk.naming import Naming
from tusk.naming.assign import assign
from tusk.naming.edits import Example
from tusk.naming.refit import Sample, sort, teach
from tusk.naming.types import edited, named_types


@dataclass(frozen=True)
class Points:
    """All points of some pictures."""

    types: np.ndarray  # (N,) of the model
    descriptors: np.ndarray  # (N, C)
    classes: np.ndarray  # (N,) of the smallest box around it; -1: in none
    pictures: np.ndarray  # (N,)
    names: tuple[str, ...]  # of the classes

    def save(self, path: Path) -> None:
        np.savez(path, **{**vars(self), "names": np.array(self.names)})

    @staticmethod
    def load(path: Path) -> Points:
        with np.load(path) as values:
            return Points(**{**values, "names": tuple(values["names"].tolist())})


@dataclass(frozen=True)
class Draw:
    """Balanced accuracy in percent, on pictures without clicks."""

    refitted: float  # by the clicks alone, and sorted
    by_clicks: float  # the types alone, named by the same clicks
    by_labels: float  # the types alone, named by all labels
    unsorted: float  # by the clicks, and what is left by all labels


def find_points(model: tusk.Model, bccd: Path, every: int) -> Points:
    """What the model finds in each so many-th picture."""
    pictures = sorted((bccd / "images").iterdir())[::every]
    boxes = [read_boxes(bccd / "BCCD" / "Annotations" / f"{picture.stem}.xml") for picture in pictures]
    names = tuple(sorted({box[0] for own in boxes for box in own}))
    types, descriptors, classes, of = [], [], [], []
    for number, (own, found) in enumerate(zip(boxes, model.detect_iter(pictures), strict=True)):
        types.append(found.type)
        descriptors.append(found.descriptor)
        classes += [_class(own, names, x, y) for x, y in found.xy.tolist()]
        of += [number] * len(found)
    return Points(np.concatenate(types), np.concatenate(descriptors), np.array(classes), np.array(of), names)


def _class(boxes: Sequence[Box], names: tuple[str, ...], x: float, y: float) -> int:
    around = [
        ((right - left) * (bottom - top), name)
        for name, left, top, right, bottom in boxes
        if left <= x <= right and top <= y <= bottom
    ]
    return names.index(min(around)[1]) if around else -1


def draws(points: Points, model_types: int, clicks: int, count: int, seed: int) -> Iterator[Draw]:
    """Each with other clicks; the kinds are taught in another order each time."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        kinds = rng.permutation(len(points.names)).tolist()
        chosen = {kind: rng.choice(np.flatnonzero(points.classes == kind), clicks, replace=False) for kind in kinds}
        clicked = np.unique(points.pictures[np.concatenate(list(chosen.values()))])
        scored = ~np.isin(points.pictures, clicked) & (points.classes >= 0)

        def figure(types: np.ndarray, said: dict[int, int], scored: np.ndarray = scored) -> float:
            return balanced(types[scored], points.classes[scored], said, len(points.names))

        taught = refitted(points, model_types, chosen)
        complete = edited(taught, sort(taught, _sample(points, taught)))
        yield Draw(
            refitted=figure(_sample(points, complete).types, _said(complete, points.names)),
            by_clicks=figure(points.types, _by_clicks(points, chosen, model_types)),
            by_labels=figure(points.types, {}),
            unsorted=figure(_sample(points, taught).types, _said(taught, points.names)),
        )


def ceiling(points: Points) -> float:
    """What all labels of one half of the pictures make of the descriptors of the other."""
    known = points.classes >= 0
    first = known & (points.pictures % 2 == 0)
    second = known & ~first
    fitted = LogisticRegression(C=100, max_iter=3000, class_weight="balanced")
    fitted.fit(points.descriptors[first], points.classes[first])
    said = fitted.predict(points.descriptors[second])
    return balanced(said, points.classes[second], {kind: kind for kind in range(len(points.names))}, len(points.names))


def _by_clicks(points: Points, chosen: dict[int, np.ndarray], types: int) -> dict[int, int]:
    votes = np.zeros((types, len(points.names)), np.int64)
    for kind, rows in chosen.items():
        np.add.at(votes, (points.types[rows], kind), 1)
    return {number: int(own.argmax()) if own.any() else -1 for number, own in enumerate(votes)}


def _said(naming: Naming, names: tuple[str, ...]) -> dict[int, int]:
    return {kind: names.index(one.name) for kind, one in named_types(naming).types.items() if one.name}


def _sample(points: Points, naming: Naming) -> Sample:
    return Sample(assign(naming, points.types, points.descriptors), points.descriptors)


def refitted(points: Points, model_types: int, chosen: dict[int, np.ndarray]) -> Naming:
    """The edits that the page makes of these clicks."""
    naming = Naming(model="0" * 64, types=model_types)
    for kind, rows in chosen.items():
        sample = _sample(points, naming)
        examples = [
            Example(x=0, y=0, source=int(sample.types[row]), descriptor=tuple(points.descriptors[row].tolist()))
            for row in rows
        ]
        number = named_types(naming).count
        naming = edited(naming, teach(naming, sample, number, points.names[kind], examples))
    return naming


def balanced(types: np.ndarray, truth: np.ndarray, said: dict[int, int], classes: int) -> float:
    """said: what types were called (-1: nothing that is right); others get the class with the largest share in them."""
    sizes = np.bincount(truth, minlength=classes)
    named = np.full(int(types.max(initial=0)) + 1, -1)
    for kind in np.unique(types).tolist():
        share = np.bincount(truth[types == kind], minlength=classes) / np.maximum(sizes, 1)
        named[kind] = said.get(kind, int(share.argmax()))
    right = named[types] == truth
    return 100 * float(np.mean([right[truth == kind].mean() for kind in range(classes) if sizes[kind]]))
