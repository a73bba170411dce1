"""Presets, files over them, and the words for what is wrong."""

from pathlib import Path

import pytest
import yaml

from tusk.errors import UsageError
from tusk.losses.prototypes import PrototypesConfig
from tusk.presets import load_config, make_config, merge, preset_names, to_yaml


def test_every_dataset_of_the_paper_has_both_variants():
    names = set(preset_names())
    for dataset in ("mnist-hard", "clevr6", "tetrominoes", "celeba", "h36m"):
        assert {f"{dataset}/paper", f"{dataset}/fast"} <= names


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_valid_and_survive_yaml(name):
    config = load_config(name)
    assert make_config(yaml.safe_load(to_yaml(config)), "round trip") == config


@pytest.mark.parametrize(
    ("name", "keypoints", "types", "window", "batch", "size", "decode"),
    [
        ("mnist-hard", 9, 10, 13, 40, 80, "plain"),
        ("clevr6", 6, 48, 21, 64, 112, "layers"),
        ("tetrominoes", 3, 114, 27, 76, 112, "layers"),
        ("celeba", 4, 32, 21, 32, 112, "plain"),
        ("h36m", 16, 32, 11, 32, 112, "plain"),
    ],
)
def test_paper_presets_hold_the_papers_table(name, keypoints, types, window, batch, size, decode):
    config = load_config(f"{name}/paper")
    model = config.model
    assert (model.keypoints, model.types, model.window, model.decode) == (keypoints, types, window, decode)
    assert (model.channels, model.width, model.levels, model.stride) == (32, 32, 4, 1)
    assert (model.variance, model.temperature, model.layer_window, model.background) == (0.05, 0.2, None, "none")
    assert (config.training.batch, config.data.size) == (batch, size)
    assert (config.training.learning_rate, config.training.prototype_learning_rate) == (1e-3, 0.1)
    assert config.training.prototype_steps == 8
    assert config.losses.prototypes == PrototypesConfig(kind="sliced-wasserstein")
    assert config.losses.kmeans.scale is None
    heavy = name == "celeba"
    assert config.losses.score_equivariance.weight == (0.05 if heavy else 0.01)
    assert config.losses.feature_equivariance.weight == (500 if heavy else 100)
    assert config.losses.reconstruction.kind == ("perceptual" if heavy else "mse")


def test_a_bare_name_is_the_fast_one():
    assert load_config("mnist-hard") == load_config("mnist-hard/fast")


def test_a_file_lies_over_the_preset(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text("model: {keypoints: 5}\ntraining: {seed: 7}\n")
    config = load_config("mnist-hard/paper", file)
    assert (config.model.keypoints, config.training.seed, config.model.types) == (5, 7, 10)


def test_merge_goes_part_by_part():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}}) == {"a": {"b": 1, "c": 4}, "d": 3}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model": {"keypoint": 3}}, r"model\.keypoint: there is no such setting; did you mean 'keypoints'\?"),
        ({"losses": {"kmeans": {"wieght": 1}}}, r"losses\.kmeans\.wieght.*did you mean 'weight'\?"),
        ({"modle": {}}, r"modle: there is no such setting; did you mean 'model'\?"),
        ({"model": {"decode": "layer"}}, r"model\.decode: 'layer' is not a choice; did you mean 'layers'\?"),
        ({"model": {"keypoints": -2}}, r"model\.keypoints: .*greater than or equal to 1 \(it is -2\)"),
        ({"losses": {"kmeans": {"weight": "much"}}}, r"losses\.kmeans\.weight: .*\(it is 'much'\)"),
        ({"training": {"batch": 7}}, r"training: batch must be even"),
    ],
)
def test_faults_are_one_sentence_with_the_nearest_name(values, words):
    with pytest.raises(UsageError, match=words) as caught:
        make_config(values, "mine.yaml")
    assert str(caught.value).startswith("mine.yaml: ") and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "hint"), [("mnist-hrd", "'mnist-hard'"), ("mnist-hard/papr", "'paper'"), ("zebra", "choose one of celeba")]
)
def test_unknown_presets(name, hint):
    with pytest.raises(UsageError, match=hint):
        load_config(name)


def test_unreadable_files(tmp_path: Path):
    with pytest.raises(UsageError, match="no such file"):
        load_config("mnist-hard", tmp_path / "absent.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("model: [1, 2\n")
    with pytest.raises(UsageError, match=r"bad\.yaml: it cannot be read as YAML"):
        load_config("mnist-hard", bad)
    bad.write_text("- just\n- a list\n")
    with pytest.raises(UsageError, match="does not hold settings"):
        load_config("mnist-hard", bad)
