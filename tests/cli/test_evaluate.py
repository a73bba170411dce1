"""`tusk evaluate` as a user meets it: real files, real processes, one sentence for a fault."""

import json

import pytest

from tests.cli.test_main import assert_sentence, tusk
from tests.evaluation.test_evaluate import LAYERS, model
from tusk.model.storage import save_model


@pytest.fixture
def model_file(tmp_path):
    save_model(tmp_path / "tiny[1].safetensors", model(**LAYERS))
    return tmp_path / "tiny[1].safetensors"


def test_the_verb_from_end_to_end(model_file, tmp_path):
    args = ("evaluate", model_file, "--data", "tetrominoes", "--count", 6, "--seed", 3)
    done = tusk(*args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "tiny[1]",
        "ARI, foreground",
        "99.7",
        "91.3",
        "shape, one to one",
        "objects matched",
        "seed 3",
        "6 images",
    ):
        assert words in done.stdout
    assert done.stderr.splitlines()[0] == "Results go to runs/evaluate/tetrominoes"
    stored = json.loads((tmp_path / "runs/evaluate/tetrominoes/metrics.json").read_text())
    assert stored["figures"]["ARI, foreground"]["paper"] == 99.7
    assert stored["images"] == 6 and stored["seed"] == 3 and stored["split"] == "test"

    again = tusk(*args, "--json", "--batch", 4, cwd=tmp_path)
    printed = json.loads(again.stdout)
    assert printed == json.loads((tmp_path / "runs/evaluate/tetrominoes-2/metrics.json").read_text())
    for name, figure in stored["figures"].items():  # batches change no more than the last digits
        assert printed["figures"][name]["value"] == pytest.approx(figure["value"], abs=1e-3)


@pytest.mark.slow
def test_a_fault_is_one_sentence_and_leaves_nothing(model_file, tmp_path):
    name = ("evaluate", model_file, "--data")
    assert_sentence(tusk(*name, "tetromino", cwd=tmp_path), 2, "'tetromino'", "did you mean 'tetrominoes'?")
    assert_sentence(tusk(*name, "folder", "--source", ".", cwd=tmp_path), 2, "nothing is known")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny[1].safetensors"]
