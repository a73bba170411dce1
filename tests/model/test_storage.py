"""A model file is read back whole, or refused with one sentence."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tusk.config import Config
from tusk.errors import DataError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, load_model, save_model

CONFIG = Config.model_validate({"model": {"keypoints": 3, "types": 4, "channels": 4, "width": 4, "levels": 2}})


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(path, StoredModel(seeded_network(CONFIG.model, 0), CONFIG, {"command": "tusk train", "seed": 0}))
    return path


def rewrite(path, tensors=None, **metadata):
    with safe_open(path, "pt") as file:
        old = file.metadata()
    save_file(tensors or load_file(path), path, {**old, **metadata})


def test_round_trip(stored):
    model = load_model(stored)
    assert model.config == CONFIG
    assert model.provenance == {"command": "tusk train", "seed": 0}
    expected = seeded_network(CONFIG.model, 0).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in model.network.state_dict().items())
    assert not model.network.training
    assert [file.name for file in stored.parent.iterdir()] == [stored.name]


def test_a_flipped_weight_a_cut_file_and_other_files_are_refused(stored, tmp_path):
    whole = stored.read_bytes()
    flipped = bytearray(whole)
    flipped[-3] ^= 1
    stored.write_bytes(flipped)
    with pytest.raises(DataError, match="checksum"):
        load_model(stored)
    stored.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not a readable safetensors file"):
        load_model(stored)
    torch.save({"a": 1}, tmp_path / "pickle.pt")
    with pytest.raises(DataError, match=r"pickle\.pt"):
        load_model(tmp_path / "pickle.pt")
    save_file({"a": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    with pytest.raises(DataError, match="not a tusk model"):
        load_model(tmp_path / "foreign.safetensors")
    with pytest.raises(DataError, match="no such model file"):
        load_model(tmp_path / "absent.safetensors")


def test_too_new_changed_configuration_or_provenance_is_refused(stored):
    rewrite(stored, version="99")
    with pytest.raises(DataError, match="newer than this tusk reads"):
        load_model(stored)
    rewrite(stored, version="1", config=json.dumps({"model": {"keypoints": 4}}))
    with pytest.raises(DataError, match="checksum"):
        load_model(stored)


@pytest.mark.parametrize("fault", ["missing", "misshapen"])
def test_missing_and_misshapen_weights_are_named(stored, fault, monkeypatch):
    tensors = load_file(stored)
    name = "encoder.unet.last.weight"
    if fault == "missing":
        del tensors[name]
    else:
        tensors[name] = torch.zeros(3, 3)
    monkeypatch.setattr("tusk.model.storage._digest", lambda *_: "same")
    rewrite(stored, tensors, sha256="same")
    with pytest.raises(DataError, match=r"encoder\.unet\.last\.weight"):
        load_model(stored)


def test_a_failed_write_leaves_the_old_file_and_no_rest(stored, monkeypatch):
    before = stored.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tusk.io.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_model(stored, StoredModel(seeded_network(CONFIG.model, 1), CONFIG))
    assert stored.read_bytes() == before
    assert [file.name for file in stored.parent.iterdir()] == [stored.name]
