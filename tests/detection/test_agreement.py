"""One chain: `tusk detect`, `tusk evaluate` and the report speak of the same objects, for every shipped model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from tests.detection.bright import shipped
from tusk.data.dataset import Dataset
from tusk.data.registry import Request, open_dataset
from tusk.detection.detections import Detections
from tusk.detection.pipeline import BatchDetections
from tusk.detection.predictor import Predictor
from tusk.evaluation.clustering import visible
from tusk.evaluation.evaluate import prepare
from tusk.evaluation.request import EvaluationRequest
from tusk.model.storage import StoredModel
from tusk.report.predictions import Predictions, predict
from tusk.report.sample import sample_of
from tusk.report.subject import open_subject

IMAGES = 50
# The images that tusk makes itself: the model, its dataset.
CASES = {"mnist-hard": "digits", "tetrominoes": "tetrominoes", "clevr6": "clevr6"}
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


class Stored:
    """Images and truths of a dataset, made once."""

    def __init__(self, dataset: Dataset) -> None:
        self.name, self.class_names = dataset.name, dataset.class_names
        self.images = [dataset.image(index) for index in range(len(dataset))]
        self.truths = [dataset.truth(index) for index in range(len(dataset))]

    def __len__(self) -> int:
        return len(self.images)

    def image(self, index: int) -> Any:
        return self.images[index]

    def truth(self, index: int) -> Any:
        return self.truths[index]


@dataclass(frozen=True)
class Views:
    """What the three give for the same images."""

    model: StoredModel
    images: list[Any]
    detect: list[Detections]
    evaluate: list[BatchDetections]  # of 25 images each
    masks: list[Any]  # evaluation's
    report: Predictions


@pytest.fixture(scope="module", params=CASES)
def views(request):
    """Batches of 8, 25 and 25 images: the parts must not matter."""
    name = request.param
    model = shipped(name)
    data = model.config.data
    made = open_dataset(CASES[name], Request(split="test", count=IMAGES, size=data.size, fit=data.fit))
    dataset = Stored(made)
    assert len(dataset) == IMAGES
    detect = Predictor(model, batch=8).detect(dataset.images)

    wanted = EvaluationRequest(CASES[name], count=IMAGES, batch=25)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tusk.evaluation.sample.open_dataset", lambda *_: dataset)
        job = prepare(model, wanted, lambda *_: None)
    batches = job.sample.batches(wanted.batch, "", lambda *_: None)
    evaluate = [job.detect(batch.images) for batch in batches]

    subject = open_subject(name)
    report = predict(subject.network, sample_of(dataset, IMAGES), IMAGES, subject.settings)
    masks = [batch.labels() for batch in evaluate]
    return Views(model, dataset.images, detect, evaluate, masks, report)


def evaluated(views, image):
    """-> which slots of an image are detections (K,), and their values."""
    batch, place = views.evaluate[image // 25], image % 25
    kept = batch.kept[place]
    labels = views.masks[image // 25]
    return kept, {
        "xy": batch.xy[place][kept].numpy(),
        "type": batch.type[place][kept].numpy(),
        "score": batch.score[place][kept].numpy(),
        "gain": batch.gain[place][kept].numpy(),
        "probability": batch.probability[place][kept].numpy(),
        "mask": None if labels is None else labels[place].numpy(),
    }


def reported(views, image):
    report = views.report
    kept = report.found[image]
    return kept, {
        "xy": report.xy[image][kept].numpy(),
        "type": report.label[image][kept].numpy(),
        "score": report.score[image][kept].numpy(),
        "gain": report.gain[image][kept].numpy(),
        "probability": report.confidence[image][kept].numpy(),
        "mask": None if report.mask is None else report.mask[image].numpy(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("other", [evaluated, reported], ids=["evaluate", "report"])
def test_the_same_objects(views, other):
    found = 0
    for image, detections in enumerate(views.detect):
        kept, values = other(views, image)
        assert detections.instance.tolist() == torch.nonzero(kept).flatten().tolist(), image
        assert detections.type.tolist() == values["type"].tolist()
        for name in ("xy", "score", "probability"):
            np.testing.assert_allclose(getattr(detections, name), values[name], **CLOSE, err_msg=f"{image} {name}")
        # A gain is a difference of two sums over some thousand pixels.
        np.testing.assert_allclose(detections.gain, values["gain"], atol=1e-3, rtol=1e-5)
        assert (detections.mask_map is None) == (values["mask"] is None)
        if detections.mask_map is not None:
            # Rounding may decide a tie of two shares.
            assert (detections.mask_map != values["mask"]).sum() <= 2, image
        found += len(detections)
    assert found > IMAGES, "there must be something to compare"


def test_the_agreement_is_about_something(views):
    """Nine in ten of the objects are counted, and hardly one that is not there."""
    true = np.array([visible(truth).sum() for truth in views.report.sample.truths])
    counts = np.array([len(detections) for detections in views.detect])
    assert np.minimum(counts, true).sum() > 0.9 * true.sum()
    assert np.maximum(counts - true, 0).sum() < 0.1 * true.sum()


def test_leaving_out_is_the_models_own(views):
    """What is below the stored least gain is in none of the three."""
    least = views.model.least_gain
    for batch in views.evaluate:
        assert (batch.gain[batch.kept] >= least).all()
    assert all((detections.gain >= least).all() for detections in views.detect)
    assert (views.report.gain[views.report.found] >= least).all()
