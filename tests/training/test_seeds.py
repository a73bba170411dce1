"""Several seeds: the steadiest is kept, what is done is not done again."""

import csv

import pytest

from tests.training.test_trainer import configured
from tusk.errors import DataError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, load_model, save_model
from tusk.training.seeds import store_seeds, stored_seeds, train_seeds

SCORES = {3: 0.4, 4: 0.8, 5: None, 6: 0.8}


def stub(seed, place):
    config = configured(training={"seed": seed})
    facts = {"seed": seed, "score": SCORES[seed], "minutes": 1.0, "steps": 20}
    save_model(place / "model.safetensors", StoredModel(seeded_network(config.model, seed), config, facts))
    return place / "model.safetensors"


def test_the_best_score_wins_and_the_table_says_so(tmp_path):
    said = []
    path = train_seeds(tmp_path, list(SCORES), stub, writes=True, say=said.append)
    assert path == tmp_path / "model.safetensors"
    assert load_model(path).provenance["seed"] == 4
    rows = list(csv.DictReader((tmp_path / "seeds.csv").open()))
    assert [(row["seed"], row["score"], row["kept"]) for row in rows] == [
        ("3", "0.4", "False"),
        ("4", "0.8", "True"),
        ("5", "", "False"),
        ("6", "0.8", "False"),
    ]
    assert any("kept" in line for line in said)


def test_seeds_are_remembered(tmp_path):
    assert stored_seeds(tmp_path) == []
    store_seeds(tmp_path, [2, 3])
    assert stored_seeds(tmp_path) == [2, 3]
    (tmp_path / "seeds.json").write_text("{}")
    with pytest.raises(DataError, match=r"seeds\.json: it cannot be read"):
        stored_seeds(tmp_path)
