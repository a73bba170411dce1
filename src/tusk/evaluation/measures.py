"""The paper's measures, one function for each, of what `detection/pipeline.py` detects: what `tusk detect` gives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from tusk.data.dataset import Truth
from tusk.data.datasets.h36m import JOINT_NAMES, swap_left_right
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.detection.pipeline import BatchDetections, detect_batch, join_slots
from tusk.detection.settings import DetectionSettings
from tusk.errors import DataError
from tusk.evaluation.counts import count_figures
from tusk.evaluation.figures import Figure, Measured, percent
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
from tusk.model.storage import StoredModel
from tusk.naming import Naming, apply_to_batch, named_types

_FEW = 10  # objects for each type: with fewer, the best name of a type is often right by chance
_BOX, _BOX_AT = 20, 80  # the paper's box, and the side of the images it is meant for


@dataclass(frozen=True)
class Points:
    """Typed keypoints of N images."""

    xy: npt.NDArray[np.float64]  # (N, K, 2)
    type: npt.NDArray[np.int64]  # (N, K)
    kept: npt.NDArray[np.bool_]  # (N, K)
    truths: tuple[Truth, ...]


@dataclass(frozen=True)
class Job:
    """Everything that is needed to measure, opened and found to fit together."""

    model: StoredModel
    request: EvaluationRequest
    task: Task
    sample: Sample
    training: Sample | None  # images that landmarks are fitted on
    settings: DetectionSettings
    progress: Progress
    naming: Naming | None = None

    @property
    def types(self) -> int:
        """How many there are to score."""
        return self.model.config.model.types if self.naming is None else len(named_types(self.naming).visible)

    @property
    def size(self) -> int:
        return self.model.config.data.size

    def detect(self, images: Tensor) -> BatchDetections:
        """images (B, 3, H, W) in [0, 1]."""
        device = self.model.network.device
        found = detect_batch(self.model.network, images.to(device), self.settings)
        found.check_numbers()
        return found if self.naming is None else apply_to_batch(found, self.naming, compact=True)

    @property
    def gain_note(self) -> str:
        """Which keypoints are left out."""
        least, given = self.settings.min_gain, self.request.min_gain is not None
        if math.isinf(least) and least < 0:
            return "every keypoint counts, whatever its gain"
        return f"keypoints of a gain below {least:.3g} are left out, as {'given' if given else 'in tusk detect'}"


def find_points(job: Job, sample: Sample, words: str) -> Points:
    """Points and types of all images, without their maps."""
    xy, types, kept = [], [], []
    truths: list[Truth] = []
    for batch in sample.batches(job.request.batch, words, job.progress):
        detections = job.detect(batch.images)
        xy.append(detections.xy.cpu())
        types.append(detections.type.cpu())
        kept.append(detections.kept.cpu())
        truths += batch.truths
    return Points(join_slots(xy).double().numpy(), join_slots(types).numpy(), join_slots(kept).numpy(), tuple(truths))


def measure_digits(job: Job) -> Measured:
    """Localisation and classification of digits."""
    points = find_points(job, job.sample, "detecting digits")
    true = [truth.points for truth in points.truths if truth.points is not None]
    classes = [truth.classes for truth in points.truths if truth.classes is not None]
    if min(len(true), len(classes)) < len(points.truths) or not job.sample.dataset.class_names:
        raise DataError(job.sample.dataset.name, "its truth has no points with classes", "use images of digits")
    figures = localisation_figures(
        np.where(points.kept[..., None], points.xy, -1e6),  # what is no detection is nowhere near
        points.type,
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
        ),
        (job.gain_note,),
    )


def measure_objects(job: Job) -> Measured:
    """Masks, attributes and counts of objects."""
    tally, counted = ObjectTally(job.types), []
    for batch in job.sample.batches(job.request.batch, "detecting objects", job.progress):
        detections = job.detect(batch.images)
        counted.append(detections.kept.sum(1).cpu().numpy())
        tally.add(detections, batch.truths)
    figures, notes = _object_figures(job, tally)
    counts = count_figures(np.concatenate(counted), tally.true_counts)
    figures.append(Figure("images counted right", 100 * counts.exact))
    figures.append(Figure("mean error of the count", counts.error, "objects", decimals=2))
    return Measured(tuple(figures), (*notes, job.gain_note))


def _object_figures(job: Job, tally: ObjectTally) -> tuple[list[Figure], list[str]]:
    figures: list[Figure] = []
    notes: list[str] = []
    masks, attributes = tally.segmentation(), tally.attributes()
    if masks is None and attributes is None:
        raise DataError(job.sample.dataset.name, "its truth has neither masks nor attributes", "use images of objects")
    if masks is not None:
        figures.append(Figure(ARI_FOREGROUND, percent(masks.ari_foreground)))
    elif job.model.config.model.decode == "plain":
        notes.append(
            "this model decodes without layers, so it has no masks: ARI and IoU cannot be measured, and objects are "
            "matched with the points that lie on them"
        )
    else:
        notes.append("the truth has no masks: ARI and IoU cannot be measured")
    if attributes is not None:
        figures += [Figure(one.name, 100 * one.many_to_one) for one in attributes.attributes]
        if len(attributes.attributes) > 1:
            figures.append(Figure("all together", 100 * attributes.together.many_to_one))
            figures.append(Figure("all together, one to one", percent(attributes.together.one_to_one)))
        single = [one for one in attributes.attributes if one.one_to_one is not None]
        figures += [Figure(f"{one.name}, one to one", percent(one.one_to_one)) for one in single]
        figures.append(Figure("objects matched", 100 * attributes.matched))
        matched = round(attributes.matched * attributes.objects)
        if matched < _FEW * job.types:
            notes.append(f"{job.types} types are named after {matched} objects only, which flatters accuracies")
    if masks is not None:
        figures.append(Figure("ARI, foreground, strict", percent(masks.ari_foreground_strict)))
        notes.append("strict: what the background takes of the foreground is a cluster of its own")
        figures += [Figure("ARI, with background", percent(masks.ari)), Figure("mean IoU", percent(masks.mean_iou))]
    return figures, notes


def measure_landmarks(job: Job) -> Measured:
    """How well one linear layer reads human landmarks off the keypoints."""
    assert job.training is not None
    typed, true = _typed_landmarks(job, job.training, "points of training images")
    weights = fit_landmarks(typed, true)
    typed, true = _typed_landmarks(job, job.sample, "points")
    unit = np.full(len(true), float(job.size)) if job.task.measure == "people" else eye_distance(true)
    figures = landmark_figures(predict_landmarks(weights, typed), true, unit, fitted_on=len(job.training))
    lines = [Figure(LANDMARK_ERROR, percent(figures.error), decimals=2)]
    if job.task.measure == "faces":
        parts = zip(LANDMARKS, figures.by_landmark, strict=True)
        lines += [Figure(f"  {name}", percent(error), decimals=2) for name, error in parts]
    fitted = f"the linear layer is fitted on {figures.fitted_on} training images"
    return Measured(tuple(lines), (fitted, job.gain_note))


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
    typed = typed_tensor(points.xy, points.type, points.kept, job.types)
    return typed, swap_left_right(landmarks) if job.task.measure == "people" else landmarks
