"""Whole evaluations in this process: the figures, what is refused, and files on the disk."""

import math
from dataclasses import replace

import pytest

from tests.data.datasets.test_celeba import folder as celeba  # noqa: F401 (a fixture: a small copy of CelebA's layout)
from tusk.config import Config, DetectionConfig
from tusk.data.datasets.tetrominoes import Tetrominoes
from tusk.data.packed import Provenance, write_packed
from tusk.errors import DataError, UsageError
from tusk.evaluation.evaluate import evaluate, prepare
from tusk.evaluation.request import EvaluationRequest
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel


def model(size=40, fit="pad", **more):
    settings = {"keypoints": 3, "types": 19, "channels": 8, "width": 8, "levels": 2, "window": 9, **more}
    config = Config.model_validate({"data": {"dataset": "tetrominoes", "size": size, "fit": fit}, "model": settings})
    return StoredModel(seeded_network(config.model, 0).eval(), config)


LAYERS = {"decode": "layers", "background": "colour"}


def silent(*_):
    pass


def measured(stored, data, **request):
    return evaluate(prepare(stored, EvaluationRequest(data, **request), silent))


def values(evaluation):
    return {figure.name: figure.value for figure in evaluation.figures}


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"data": "celeba"}, "it needs the official in-the-wild release"),
        ({"data": "tetrominoes", "count": 0}, "--count: 0 is not possible"),
        ({"data": "tetrominoes", "keypoints": 900}, "900 keypoints do not fit"),
        ({"data": "tetrominoes", "split": "half"}, "there is no such split"),
        ({"data": "tetrominoes", "seed": -1}, "--seed: -1 is negative"),
        ({"data": "clevr10", "source": "scenes", "split": "train"}, "scenes is one split by itself"),
        ({"data": "faces", "split": "train"}, "cannot score them too"),
        ({"data": "digits", "training": "photos"}, "--training: nothing is fitted"),
        ({"data": "digits"}, "images of 80x80 do not fit in 40 pixels.*use a model of larger images"),
    ],
)
def test_what_cannot_be_asked(wanted, words):
    with pytest.raises(UsageError, match=words):
        prepare(model(), EvaluationRequest(**wanted), silent)


def test_celeba_is_fitted_on_the_training_images_of_mafl(request, monkeypatch, tmp_path):
    folder = request.getfixturevalue("celeba")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    job = prepare(model(size=32, fit="centre-crop"), EvaluationRequest("celeba", source=str(folder)), silent)
    assert job.training is not None
    assert job.training.dataset.original.files == ["000001.jpg", "000003.jpg"]
    assert job.sample.dataset.original.files == ["000008.jpg", "000009.jpg"]
    assert evaluate(job).images == 2
    official = EvaluationRequest("celeba", source=str(folder), split="official-test")
    assert prepare(model(size=32, fit="centre-crop"), official, silent).sample.dataset.original.files[0] == "000009.jpg"


class WithoutTruth(Tetrominoes):
    def truth(self, _):
        return None


def packed(path, dataset):
    write_packed(path, dataset, provenance=Provenance("test", 0, ""))
    return str(path)


def test_packed_files(tmp_path):
    source = packed(tmp_path / "test.h5", Tetrominoes(split="test", count=5))
    stored = model(**LAYERS)
    alone = measured(stored, "tetrominoes", source=source)
    assert alone.images == 5 and alone.split == "test.h5"
    assert "images counted right" in values(alone) and "gain below 0" in " ".join(alone.notes)
    with pytest.raises(UsageError, match="nothing is fitted"):
        measured(stored, "tetrominoes", source=source, training=source)
    with pytest.raises(UsageError, match="6 images were asked for, but there are 5; give at most 5"):
        measured(stored, "tetrominoes", source=source, count=6)
    with pytest.raises(UsageError, match="is one split by itself"):
        measured(stored, "tetrominoes", source=source, split="test")
    with pytest.raises(UsageError, match="name them with --training"):
        measured(model(), "faces", source=source)
    with pytest.raises(DataError, match="3 landmarks instead of the 5"):
        measured(model(), "faces", source=source, training=source)
    with pytest.raises(DataError, match="no points with classes"):
        measured(model(), "digits", source=source)
    bare = packed(tmp_path / "bare.h5", WithoutTruth(count=2))
    with pytest.raises(DataError, match="there is no truth about its images"):
        measured(stored, "tetrominoes", source=bare)


def test_a_model_without_layers_gives_what_it_can():
    figures = measured(model(), "tetrominoes", count=4)
    assert {"shape", "color", "objects matched"} <= values(figures).keys()
    assert not any("ARI" in name or "IoU" in name for name in values(figures))
    assert "decodes without layers" in figures.notes[0]
    assert "flatters" in " ".join(figures.notes)  # a dozen objects for 19 types


def test_the_least_gain_is_the_one_stored_with_the_model_unless_given():
    stored = model(**LAYERS)
    limits = {"stored": {"least_gain": 1e9}, "none": {"least_gain": None}}
    found = {
        name: measured(replace(stored, provenance=known), "tetrominoes", count=4) for name, known in limits.items()
    }
    assert values(found["stored"])["objects matched"] == 0 and "gain below 1e+09" in " ".join(found["stored"].notes)
    assert values(found["stored"])["mean error of the count"] == 3
    given = measured(replace(stored, provenance=limits["stored"]), "tetrominoes", count=4, min_gain=0.0)
    assert values(given) == values(found["none"])
    every = measured(stored, "tetrominoes", count=4, min_gain=-math.inf)
    assert "every keypoint counts" in " ".join(every.notes)


def test_detection_settings_may_be_given():
    stored = model(**LAYERS)
    wide = measured(stored, "tetrominoes", count=4, detection=DetectionConfig(window=21))
    assert values(wide) != values(measured(stored, "tetrominoes", count=4))
    with pytest.raises(UsageError, match=r"detection: .*relocate_keypoints needs model.background"):
        measured(model(), "tetrominoes", count=4, detection=DetectionConfig(relocate_keypoints=1))


def test_the_same_seed_gives_the_same_figures_and_another_one_others():
    stored = model(**LAYERS)
    first, same, other = (values(measured(stored, "tetrominoes", count=4, seed=seed)) for seed in (1, 1, 2))
    assert first == same != other


def test_a_part_of_a_larger_split_is_drawn_at_random(tmp_path):
    source = packed(tmp_path / "many.h5", Tetrominoes(split="test", count=30))

    def chosen(seed):
        request = EvaluationRequest("tetrominoes", source=source, count=5, seed=seed)
        return prepare(model(), request, silent).sample.indices

    assert len(set(chosen(0))) == 5 and (chosen(0) == chosen(0)).all() and (chosen(0) != chosen(1)).any()


@pytest.mark.parametrize("data", ["faces", "people"])
def test_landmarks_of_an_untrained_network(data):
    figures = measured(model(size=32, fit="centre-crop"), data, count=4)
    assert figures.figures[0].name == "landmark error" and 0 < figures.figures[0].value < 1000
    assert figures.figures[0].paper == {"faces": 18.49, "people": 6.88}[data]
    assert "fitted on 8 training images" in figures.notes[0]
