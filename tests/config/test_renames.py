"""Settings under former names: in stored models silently, in YAML files with a word about the present name."""

import json
from pathlib import Path

import pytest
from safetensors import safe_open

from tusk.config import Config, LossesConfig
from tusk.config.renames import REMOVED, RENAMED, RENAMED_VALUES, upgrade
from tusk.presets import load_config, to_yaml
from tusk.weights import shipped_models

# What a setting that needs others to be valid is tried with.
LAYERS = {"decode": "layers", "background": "colour"}
VALUES = {
    "losses.contrast": {"weight": 0.3},
    "losses.votes": {"weight": 0.3},
    "losses.flat": {"weight": 0.3},
    "losses.equivariance.features": "unit",
    "losses.equivariance.masked": False,
    "model.layer_tint": True,
    "model.second_looks": 2,
    "model.relocate_keypoints": 2,
    "training.islands_by_looks": True,
    "training.revive_every": 7,
}


FOLDERS = {"blood-cells": "folder"}  # shipped model -> its preset, where they have different names


def nested(name, value):
    for word in reversed(name.split(".")):
        value = {word: value}
    return value


def at(values, name):
    for word in name.split("."):
        values = values[word]
    return values


def read(tmp_path, values, preset=None):
    file = tmp_path / "old.yaml"
    file.write_text(json.dumps(values))
    return load_config(preset, file)


@pytest.mark.parametrize("old", RENAMED)
def test_every_former_name_is_taken_and_its_present_one_said_once(tmp_path, capsys, old):
    value = VALUES.get(old, 0.5)
    values = nested(old, value)
    values.setdefault("model", {}).update(LAYERS)
    values.setdefault("training", {}).update(prototype_start="spectral", memory=100)
    config = read(tmp_path, values).model_dump(mode="json")
    said = capsys.readouterr().err
    for new in RENAMED[old]:
        found = at(config, new)
        assert value.items() <= found.items() if isinstance(value, dict) else found == value
        assert said.count(f"'{new}'") == 1
    assert said.count("\n") == 1 and f"'{old}' is now called" in said


@pytest.mark.parametrize(("name", "old"), RENAMED_VALUES)
def test_every_former_value_is_taken_and_its_present_one_said(tmp_path, capsys, name, old):
    config = read(tmp_path, nested(name, old)).model_dump(mode="json")
    said = capsys.readouterr().err
    for new, value in RENAMED_VALUES[name, old].items():
        assert at(config, new) == value and f"'{new}: {value}'" in said


@pytest.mark.parametrize("name", REMOVED)
def test_settings_that_are_gone_are_left_out_and_said_only_where_that_matters(tmp_path, capsys, name):
    read(tmp_path, nested(name, REMOVED[name]))
    assert capsys.readouterr().err == ""
    read(tmp_path, nested(name, 0.7))
    assert f"'{name}' is no longer a setting" in capsys.readouterr().err


def test_a_files_former_name_wins_over_the_presets_present_one(tmp_path):
    assert load_config("clevr6").detection.relocate_keypoints == 3
    assert read(tmp_path, {"model": {"second_looks": 1}}, "clevr6").detection.relocate_keypoints == 1


def test_the_present_name_wins_where_a_file_holds_both():
    values, _ = upgrade({"losses": {"contrast": {"weight": 1}, "info_nce": {"weight": 2}}})
    assert values == {"losses": {"info_nce": {"weight": 2}}}


@pytest.mark.parametrize(
    ("points", "model", "detection", "training"),
    [
        ([[0.9999, 13], [1.0, 9]], 13, 9, None),
        ([[0.2, 21], [0.9999, 13.0], [1.0, 9.0]], 13, 9, ((0.2, 21), (0.9999, 13))),
        ([[0.3, 13], [0.5, 9]], 9, None, ((0.3, 13), (0.5, 9))),
        ([[0.3, 13], [0.3001, 9]], 9, None, ((0.3, 13), (0.3001, 9))),
    ],
)
def test_a_window_that_jumped_at_the_end_was_one_for_detection(tmp_path, points, model, detection, training):
    config = read(tmp_path, {"model": {"window": 9}, "training": {"window": points}})
    assert (config.model.window, config.detection.window, config.training.window) == (model, detection, training)


def stored(name):
    with safe_open(shipped_models()[name], "pt") as file:
        return json.loads(file.metadata()["config"])


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_have_the_settings_of_their_presets(name):
    values = stored(name)
    config, preset = Config.from_stored(values), load_config(FOLDERS.get(name, name))
    assert config.detection == preset.detection and config.losses == preset.losses
    if name in FOLDERS:  # how many keypoints and types there are, and which were merged, is up to the pictures
        decided = {one: getattr(config.model, one) for one in ("keypoints", "types", "prototypes")}
        assert config.model == preset.model.model_copy(update=decided)
    else:
        assert config.model == preset.model
    assert config.detection.window == {"clevr6": 9}.get(name)


def test_a_stored_model_needs_no_loss_that_is_not_registered_here():
    values = Config().model_dump(mode="json")
    values["losses"]["of_somebody_else"] = {"weight": 0.3, "power": 2}
    assert Config.from_stored(values) == Config()
    assert "of_somebody_else" not in LossesConfig.model_fields


def test_what_is_written_today_has_no_former_names(tmp_path: Path, capsys):
    for name in ("clevr6", "mnist-hard/paper"):
        file = tmp_path / "now.yaml"
        file.write_text(to_yaml(load_config(name)))
        assert load_config(None, file) == load_config(name)
    assert capsys.readouterr().err == ""
