"""A model file is read back whole, or refused with one sentence."""

import json
import os
import resource
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tusk.config import Config
from tusk.errors import DataError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, _digest, load_model, save_model

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


def reseal(path, tensors=None, **metadata):
    """The same with a checksum that is right: whoever makes a file to do harm can compute one."""
    with safe_open(path, "pt") as file:
        old = file.metadata()
    tensors, new = load_file(path) if tensors is None else tensors, {**old, **metadata}
    save_file(tensors, path, {**new, "sha256": _digest(tensors, new["config"], new["provenance"])})


def refused(path, words):
    """One line, with the file's name in it."""
    with pytest.raises(DataError, match=words) as error:
        load_model(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value) and len(str(error.value)) < 800


def test_changed_configuration_or_provenance_does_not_match_the_checksum(stored):
    changed = CONFIG.model_copy(update={"model": CONFIG.model.model_copy(update={"keypoints": 4})})
    rewrite(stored, config=changed.model_dump_json())
    refused(stored, "checksum")
    rewrite(stored, config=CONFIG.model_dump_json(), provenance="{}")
    refused(stored, "checksum")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("99", "its format 99 is newer"),
        ("9" * 5000, r"its format 9+\.\.\. is newer"),
        ("one", "its format 'one' is not a number"),
        ("", "is not a number"),
        ("-1", "is not a number"),
        ("1.0", "is not a number"),
        ("²", "is not a number"),
        ("1\n2", r"its format '1\\n2' is not a number"),
    ],
)
def test_versions_that_are_none(stored, version, words):
    reseal(stored, version=version)
    refused(stored, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ('"text"', "is not a JSON object"),
        ('{"a":' * 900 + "1" + "}" * 900, "nested too deeply"),
        ('{"a":' + "[" * 200_000 + "]" * 200_000 + "}", "nested too deeply"),
        ('{"a":[' + "0," * 600_000 + "0]}", "too many values"),
        (json.dumps({f"a{number}": 1 for number in range(2000)}), "too many values"),
        ('{"a":"' + "x" * (9 << 20) + '"}', "characters"),
        ('{"a":' + "9" * 5000 + "}", "is not JSON"),  # Python reads no numbers of so many digits
    ],
)
@pytest.mark.parametrize("what", ["config", "provenance"])
def test_texts_that_are_no_objects_of_sensible_extent(stored, what, text, words):
    reseal(stored, **{what: text})
    refused(stored, f"its {'configuration' if what == 'config' else 'provenance'} .*{words}")


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", "many"), ("minutes", [1]), ("least_gain", 10**4000), ("seed", True), ("score", float("inf"))],
)
def test_numbers_of_the_provenance_that_are_none(stored, name, value):
    sys.set_int_max_str_digits(5000)
    reseal(stored, provenance=json.dumps({name: value}))
    refused(stored, f"its provenance gives .* for {name}")


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("model", "types", 10**9), ("model", "types", 0), ("model", "types", -1), ("model", "types", 2**70),
        ("model", "keypoints", 10**6), ("model", "channels", 10**6), ("model", "width", 10**6),
        ("model", "width", 1025), ("model", "levels", 60), ("model", "stride", 3), ("model", "window", 10**9 + 1),
        ("model", "window", 6), ("model", "layer_window", 2**40), ("model", "temperature", float("inf")),
        ("model", "width", "wide"), ("model", "width", [4]), ("data", "size", 10**9), ("data", "size", 4097),
        ("data", "size", 0), ("data", "scale", 1e300), ("data", "fit", "stretch"), ("detection", "window", 10**9 + 1),
        ("detection", "relocate_keypoints", 10**9), ("training", "steps", 10**100), ("training", "window", []),
        ("losses", "reconstruction", 5), ("training", "window", [[0.9995], "ab"]),
        ("training", "window", [[0.9995, {}], [1, 2]]), ("training", "window", [[0.9995, float("inf")], [1, 2]]),
    ],
)  # fmt: skip
def test_absurd_settings_are_named(stored, part, name, value):
    values = CONFIG.model_dump(mode="json")
    values[part][name] = value
    reseal(stored, config=json.dumps(values))
    refused(stored, rf"model\.safetensors: ({part}\.{name}: |model: (window must|width x))")


@pytest.mark.parametrize(
    "values",
    [
        {"model": {"colour\n" * 1000: 1}}, {"model": 5}, {"model": {"second_looks": 1}, "detection": "x"},
        {"losses": []}, {"x" * 100_000: 1}, {f"a{number}": 1 for number in range(1000)},
        {"training": {"prototype_restarts": ["x"] * 40_000}},
        {"training": {"window": [[0.9995, 3], [1, 5]]}, "model": "none"},
    ],
)  # fmt: skip
def test_configurations_of_another_build_are_one_sentence(stored, values):
    reseal(stored, config=json.dumps(values))
    refused(stored, "use a file that tusk saved, or upgrade tusk")


def test_a_network_that_is_wide_and_deep_is_refused_before_it_takes_memory(stored):
    values = CONFIG.model_dump(mode="json")
    values["model"] |= {"width": 1024, "levels": 6}
    reseal(stored, config=json.dumps(values))
    refused(stored, "at most 2048, not 32768")
    values["model"] |= {"width": 64, "channels": 1024, "types": 4096}  # allowed, and a gigabyte of weights
    reseal(stored, config=json.dumps(values))
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(stored, r"has shape \(4, 3, 3, 3\) instead of \(64, 3, 3, 3\)")
    assert time.monotonic() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes; 20 MB on Linux, if any


WEIGHT = "encoder.unet.last.weight"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors.pop(WEIGHT), f"the weight '{WEIGHT}' is missing"),
        (lambda tensors: tensors.update({WEIGHT: torch.zeros(3, 3)}), rf"'{WEIGHT}' has shape \(3, 3\) instead of"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT][None]}), "has shape"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT].half()}), f"'{WEIGHT}' is of type F16 instead of F32"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT].double()}), "is of type F64"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT].int()}), "is of type I32"),
        (lambda tensors: tensors.update({"a\nmore": torch.zeros(3)}), r"holds the weight 'a\\nmore', for which"),
        (lambda tensors: tensors[WEIGHT].view(-1)[3:4].fill_(torch.nan), f"'{WEIGHT}' holds values that are not"),
        (lambda tensors: tensors[WEIGHT].view(-1)[3:4].fill_(-torch.inf), "not finite"),
        (lambda tensors: tensors["descriptor_space.running_mean"].fill_(torch.nan), "descriptor_space.running_mean"),
    ],
)
def test_weights_that_do_not_fit_are_named(stored, change, words):
    tensors = {name: value.clone() for name, value in load_file(stored).items()}
    change(tensors)
    reseal(stored, tensors)
    refused(stored, words)


def test_a_header_that_claims_to_be_huge_is_not_read(stored):
    whole = stored.read_bytes()
    for length in (25 << 20, 2**63, 2**64 - 1):
        stored.write_bytes(length.to_bytes(8, "little") + whole[8:])
        refused(stored, "its header would have")
    stored.write_bytes(whole[:5])
    refused(stored, "not a readable safetensors file")


def test_what_tusk_saves_can_be_read_back_however_long_the_command_was(tmp_path):
    path = tmp_path / "long.safetensors"
    data = CONFIG.data.model_copy(update={"source": Path("x" * (2 << 20))})
    config = CONFIG.model_copy(update={"data": data})
    facts = {"command": "tusk train " + "y" * (3 << 20), "steps": 3}
    save_model(path, StoredModel(seeded_network(CONFIG.model, 0), config, facts))
    loaded = load_model(path)
    assert loaded.provenance["command"].startswith("tusk train y") and loaded.provenance["steps"] == 3
    assert loaded.config == CONFIG and path.stat().st_size < 1 << 20


def test_a_folder_whose_name_is_not_unicode(tmp_path):
    source = Path(os.fsdecode(b"/tmp/\xff"))
    config = CONFIG.model_copy(update={"data": CONFIG.data.model_copy(update={"source": source})})
    model = StoredModel(seeded_network(CONFIG.model, 0), config)
    save_model(tmp_path / "model.safetensors", model)
    loaded = load_model(tmp_path / "model.safetensors")
    assert loaded.config == config and loaded.fingerprint() == model.fingerprint()


def test_half_precision_is_saved_in_full_and_the_loaded_network_computes_the_same(tmp_path):
    for settings in ({"decode": "plain"}, {"decode": "layers", "background": "picture", "layer_window": 16}):
        config = CONFIG.model_copy(update={"model": CONFIG.model.model_copy(update=settings)})
        network = seeded_network(config.model, 3).half()
        save_model(tmp_path / "half.safetensors", StoredModel(network, config))
        loaded = load_model(tmp_path / "half.safetensors").network
        image = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            expected, got = network.float().eval()(image, missing="empty"), loaded(image, missing="empty")
        assert torch.equal(got.reconstruction, expected.reconstruction) and torch.equal(got.xy, expected.xy)
        assert not any(value.is_meta for value in [*loaded.parameters(), *loaded.buffers()])


def test_a_failed_write_leaves_the_old_file_and_no_rest(stored, monkeypatch):
    before = stored.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tusk.io.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_model(stored, StoredModel(seeded_network(CONFIG.model, 1), CONFIG))
    assert stored.read_bytes() == before
    assert [file.name for file in stored.parent.iterdir()] == [stored.name]
