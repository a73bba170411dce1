"""Whole evaluations in this process: what is told, what cannot be asked, and files on the disk."""

import pytest

from tests.data.datasets.test_celeba import folder as celeba  # noqa: F401 (a fixture: a small copy of CelebA's layout)
from tusk.config import Config
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
        ({"data": "clevr10", "source": "scenes", "split": "train"}, "scenes is one split as it stands"),
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
    assert "images counted right" not in values(alone) and "not counted" in " ".join(alone.notes)
    whole = measured(stored, "tetrominoes", source=source, training=source)
    assert "images counted right" in values(whole)
    with pytest.raises(UsageError, match="6 images were asked for, but there are 5; give at most 5"):
        measured(stored, "tetrominoes", source=source, count=6)
    with pytest.raises(UsageError, match="is one split as it stands"):
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


def test_a_model_without_layers_tells_what_it_can():
    told = measured(model(), "tetrominoes", count=4)
    assert {"shape", "color", "objects matched"} <= values(told).keys()
    assert not any("ARI" in name or "IoU" in name for name in values(told))
    assert "paints without layers" in told.notes[0]
    assert "flatters" in " ".join(told.notes)  # a dozen objects for 19 types


def test_the_same_seed_gives_the_same_figures_and_another_one_others():
    stored = model(**LAYERS)
    first, same, other = (values(measured(stored, "tetrominoes", count=4, seed=seed)) for seed in (1, 1, 2))
    assert first == same != other


def test_a_part_of_a_larger_split_is_drawn_by_lot(tmp_path):
    source = packed(tmp_path / "many.h5", Tetrominoes(split="test", count=30))

    def chosen(seed):
        request = EvaluationRequest("tetrominoes", source=source, count=5, seed=seed)
        return prepare(model(), request, silent).sample.indices

    assert len(set(chosen(0))) == 5 and (chosen(0) == chosen(0)).all() and (chosen(0) != chosen(1)).any()


@pytest.mark.parametrize("data", ["faces", "people"])
def test_landmarks_of_an_untrained_network(data):
    told = measured(model(size=32, fit="centre-crop"), data, count=4)
    assert told.figures[0].name == "landmark error" and 0 < told.figures[0].value < 1000
    assert told.figures[0].paper == {"faces": 18.49, "people": 6.88}[data]
    assert "fitted on 8 training images" in told.notes[0]
