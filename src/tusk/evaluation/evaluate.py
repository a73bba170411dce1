"""A model against a dataset: the paper's measure, beside the paper's figures."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from tusk.detection.settings import settings_of
from tusk.errors import UsageError
from tusk.evaluation.figures import Figure
from tusk.evaluation.measures import Job, measure_digits, measure_landmarks, measure_objects
from tusk.evaluation.protocols import PROTOCOLS
from tusk.evaluation.request import EvaluationRequest, check
from tusk.evaluation.sample import Progress, open_sample, open_training
from tusk.model.network import check_size
from tusk.model.storage import StoredModel
from tusk.naming import Naming

_MEASURES = {
    "digits": measure_digits,
    "objects": measure_objects,
    "faces": measure_landmarks,
    "people": measure_landmarks,
}
_FIT_SHARE = 2  # training images for each scored one, to fit the landmarks on


@dataclass(frozen=True)
class Evaluation:
    """A model on a dataset: every figure, beside the paper's."""

    data: str
    split: str
    images: int
    seed: int
    keypoints: int
    types: int
    protocol: str
    paper: str  # where the paper's figures come from
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]
    minutes: float


def prepare(model: StoredModel, request: EvaluationRequest, progress: Progress, naming: Naming | None = None) -> Job:
    """Open everything; whatever does not fit together is refused here, before the long work.

    naming: types as people merged, split and hid them; what is scored then is those.
    """
    task = check(request)
    data = model.config.data
    keypoints = request.keypoints or task.keypoints
    settings = settings_of(model, keypoints, request.min_score, request.min_gain, request.detection)
    check_size(model.config.model, data.size, data.size, settings.keypoints, settings.window)
    sample = open_sample(request, data)
    first = int(sample.indices[0])
    sample.truth(first)
    try:
        sample.dataset.image(first)
    except UsageError as error:  # a model of small images that are not to be scaled
        raise UsageError(f"dataset '{request.data}'", error.why, "use a model of larger images") from error
    training = open_training(request, task, _FIT_SHARE * len(sample), data) if task.is_fitted else None
    return Job(model, request, task, sample, training, settings, progress, naming)


def evaluate(job: Job) -> Evaluation:
    """The measure that belongs to the dataset. Labels are used here and nowhere else."""
    started = time.monotonic()
    measured = _MEASURES[job.task.measure](job)
    paper = {figure.name: figure.value for figure in job.task.paper}
    return Evaluation(
        data=job.request.data,
        split=job.request.split_name,
        images=len(job.sample),
        seed=job.request.seed,
        keypoints=job.settings.keypoints,
        types=job.types,
        protocol=PROTOCOLS[job.task.measure],
        paper=job.task.source,
        figures=tuple(replace(figure, paper=paper.get(figure.name)) for figure in measured.figures),
        notes=(*measured.notes, *_about_images(job), *_about_names(job)),
        minutes=(time.monotonic() - started) / 60,
    )


def _about_names(job: Job) -> list[str]:
    if job.naming is None:
        return []
    return [f"types are those of the names beside the model, {job.types} from {job.model.config.model.types}"]


def _about_images(job: Job) -> list[str]:
    """What sets the images apart from the paper's."""
    if job.task.stand_in:
        return [f"the paper's figures are for {job.task.paper_data}, which these images only stand in for"]
    if job.request.source is None and job.task.measure == "objects":
        return ["the images are made by tusk after the original's rules; the paper's are the original"]
    return []
