"""The paper's measures, one function for each, as lines of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tusk.data.dataset import Truth
from tusk.data.datasets.h36m import JOINT_NAMES, swap_left_right
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.detection.gain import gains
from tusk.detection.merge import merge_fragments
from tusk.detection.relocate import detect_keypoints
from tusk.detection.threshold import found_gains, gain_threshold
from tusk.errors import DataError
from tusk.evaluation.counts import count_figures
from tusk.evaluation.landmarks import (
    eye_distance,
    fit_landmarks,
    landmark_figures,
    predict_landmarks,
    typed_tensor,
)
from tusk.evaluation.localisation import localisation_figures
from tusk.evaluation.protocols import ARI_FOREGROUND, LANDMARK_ERROR, Task
from tusk.evaluation.request import EvaluationRequest
from tusk.evaluation.sample import Progress, Sample
from tusk.evaluation.tally import ObjectTally
from tusk.model.layers import keep_layers
from tusk.model.network import Network
from tusk.model.storage import StoredModel

_FEW = 10  # objects for each type: with fewer, the best name of a type is often right by chance
_BOX, _BOX_AT = 20, 80  # the paper's box, and the side of the images it is meant for


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    value: float | None  # None where it cannot be told
    unit: str = "%"
    decimals: int = 1
    paper: float | None = None


@dataclass(frozen=True)
class Measured:
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()  # what a reader has to know beside them


@dataclass(frozen=True)
class Points:
    """Typed keypoints of N images."""

    xy: npt.NDArray[np.float64]  # (N, K, 2)
    label: npt.NDArray[np.int64]  # (N, K)
    found: npt.NDArray[np.bool_]  # (N, K)
    truths: tuple[Truth, ...]


@dataclass(frozen=True)
class Job:
    """Everything that is needed to measure, opened and found to fit together."""

    model: StoredModel
    request: EvaluationRequest
    task: Task
    sample: Sample
    training: Sample | None  # images that something is fitted on
    no_training: str  # why there are none
    keypoints: int
    progress: Progress

    @property
    def network(self) -> Network:
        return self.model.network

    @property
    def types(self) -> int:
        return self.model.config.model.types

    @property
    def size(self) -> int:
        return self.model.config.data.size


def find_points(job: Job, sample: Sample, words: str) -> Points:
    """Points and types alone: nothing is painted, which would take most of the time."""
    xy, label, found = [], [], []
    truths: list[Truth] = []
    for batch in sample.batches(job.request.batch, words, job.progress):
        encoding = job.network.encode(batch.images, job.keypoints)
        xy.append(job.network.to_image(encoding.keypoints.xy))
        label.append(job.network.prototypes(encoding.descriptors).argmax(-1))
        found.append(encoding.keypoints.found)
        truths += batch.truths
    return Points(torch.cat(xy).double().numpy(), torch.cat(label).numpy(), torch.cat(found).numpy(), tuple(truths))


def measure_digits(job: Job) -> Measured:
    points = find_points(job, job.sample, "finding digits")
    true = [truth.points for truth in points.truths if truth.points is not None]
    classes = [truth.classes for truth in points.truths if truth.classes is not None]
    if min(len(true), len(classes)) < len(points.truths) or not job.sample.dataset.class_names:
        raise DataError(job.sample.dataset.name, "its truth has no points with classes", "use images of digits")
    figures = localisation_figures(
        np.where(points.found[..., None], points.xy, -1e6),  # what was not found is nowhere near
        points.label,
        true,
        classes,
        type_count=job.types,
        class_count=len(job.sample.dataset.class_names),
        side=_BOX * job.size / _BOX_AT,
    )
    return Measured(
        (
            Figure("localisation", 100 * figures.localisation),
            Figure("classification", 100 * figures.classification),
            Figure("both", 100 * figures.both),
        )
    )


def measure_objects(job: Job) -> Measured:
    tally, counted = ObjectTally(job.types), []
    threshold, notes = _threshold(job)
    for batch in job.sample.batches(job.request.batch, "looking at objects", job.progress):
        output = detect_keypoints(job.network, batch.images, job.keypoints)
        if threshold is not None:
            output = keep_layers(output, gains(job.network, batch.images, output) >= threshold)
        output = merge_fragments(job.network, batch.images, output)
        counted.append(output.found.sum(1).numpy())
        tally.add(output, batch.truths)
    figures: list[Figure] = []
    masks, attributes = tally.segmentation(), tally.attributes()
    if masks is None and attributes is None:
        raise DataError(job.sample.dataset.name, "its truth has neither masks nor attributes", "use images of objects")
    if masks is not None:
        figures.append(Figure(ARI_FOREGROUND, _percent(masks.ari_foreground)))
    elif job.model.config.model.decode == "plain":
        notes.insert(
            0,
            "this model paints without layers, so it has no masks: ARI and IoU cannot be told, and objects are matched "
            "with the points that lie on them",
        )
    else:
        notes.insert(0, "the truth has no masks: ARI and IoU cannot be told")
    if attributes is not None:
        figures += [Figure(one.name, 100 * one.many_to_one) for one in attributes.attributes]
        if len(attributes.attributes) > 1:
            figures.append(Figure("all together", 100 * attributes.together.many_to_one))
            figures.append(Figure("all together, one to one", _percent(attributes.together.one_to_one)))
        single = [one for one in attributes.attributes if one.one_to_one is not None]
        figures += [Figure(f"{one.name}, one to one", _percent(one.one_to_one)) for one in single]
        figures.append(Figure("objects matched", 100 * attributes.matched))
        matched = round(attributes.matched * attributes.objects)
        if matched < _FEW * job.types:
            notes.append(f"{job.types} types are named after {matched} objects only, which flatters accuracies")
    if masks is not None:
        figures.append(Figure("ARI, foreground, strict", _percent(masks.ari_foreground_strict)))
        notes.append("strict: what the background takes of the foreground is a cluster of its own")
        figures += [Figure("ARI, with background", _percent(masks.ari)), Figure("mean IoU", _percent(masks.mean_iou))]
    if threshold is not None:
        counts = count_figures(np.concatenate(counted), tally.true_counts)
        figures.append(Figure("images counted right", 100 * counts.exact))
        figures.append(Figure("mean error of the count", counts.error, "objects", decimals=2))
    return Measured(tuple(figures), tuple(notes))


def _threshold(job: Job) -> tuple[float | None, list[str]]:
    """The least gain of a keypoint that counts, from unlabelled training images; None where there are none."""
    sample = job.training
    if sample is None:
        return None, [f"objects are not counted, since that needs training images ({job.no_training})"]
    worth = []
    for batch in sample.batches(job.request.batch, "gains on training images", job.progress, truth=False):
        worth.append(found_gains(job.network, batch.images, job.keypoints))
    threshold = gain_threshold(np.concatenate(worth))
    if math.isinf(threshold):
        words = f"all keypoints count: their gains on {len(sample)} unlabelled training images are of one kind"
    else:
        words = f"keypoints count from a gain of {threshold:.3g}, set on {len(sample)} unlabelled training images"
    return threshold, [words]


def measure_landmarks(job: Job) -> Measured:
    assert job.training is not None
    typed, true = _typed_landmarks(job, job.training, "points of training images")
    weights = fit_landmarks(typed, true)
    typed, true = _typed_landmarks(job, job.sample, "points")
    unit = np.full(len(true), float(job.size)) if job.task.measure == "people" else eye_distance(true)
    figures = landmark_figures(predict_landmarks(weights, typed), true, unit, fitted_on=len(job.training))
    lines = [Figure(LANDMARK_ERROR, _percent(figures.error), decimals=2)]
    if job.task.measure == "faces":
        parts = zip(LANDMARKS, figures.by_landmark, strict=True)
        lines += [Figure(f"  {name}", _percent(error), decimals=2) for name, error in parts]
    return Measured(tuple(lines), (f"the linear layer is fitted on {figures.fitted_on} training images",))


def _typed_landmarks(job: Job, sample: Sample, words: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
    """(N, M, K, 2) the points by type, and (N, T, 2) the true landmarks."""
    expected = len(JOINT_NAMES if job.task.measure == "people" else LANDMARKS)
    points = find_points(job, sample, words)
    true = []
    for index, truth in zip(sample.indices, points.truths, strict=True):
        number = 0 if truth.points is None else len(truth.points)
        if truth.points is None or number != expected:
            why = f"image {index} has {number} landmarks instead of the {expected} of one face or person"
            raise DataError(sample.dataset.name, why, "use images of one each")
        true.append(truth.points)
    landmarks = np.stack(true)
    typed = typed_tensor(points.xy, points.label, points.found, job.types)
    return typed, swap_left_right(landmarks) if job.task.measure == "people" else landmarks


def _percent(share: float | None) -> float | None:
    return None if share is None or math.isnan(share) else 100 * share
