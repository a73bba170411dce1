"""What `tusk train SOURCE` takes a source for."""

import pytest
import yaml

from tests.cli.test_main import assert_sentence, tusk
from tests.pictures import save_squares
from tusk.model.storage import load_model


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    save_squares(folder, 8)
    return folder


def test_any_presets_settings_can_be_tried_on_pictures(pictures, tmp_path):
    small = ("--training.steps", 2, "--training.batch", 4, "--data.size", 32, "--keypoints", 3, "--types", 2)
    done = tusk("train", pictures, "--preset", "mnist-hard", *small, "--model.window", 5, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "32-pixel tiles of pictures, 3 keypoints in each, 2 types" in done.stderr
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["data"]["dataset"] == "folder"
    assert (config["data"]["fit"], config["data"]["contrast"]) == ("tiles", "full")
    assert config["losses"]["uniform_region"]["weight"] == 0.1, "the rest is the preset's"


def test_a_resumed_run_knows_how_it_began(pictures, tmp_path):
    small = ("--training.steps", 2, "--training.batch", 4, "--data.size", 32, "--keypoints", 3, "--model.window", 5)
    assert tusk("train", pictures, *small, "--out", tmp_path / "run").returncode == 0
    model = tmp_path / "run" / "model.safetensors"
    began = load_model(model).provenance["command"]
    assert began.startswith("tusk train ") and "--training.steps 2" in began
    model.unlink()
    assert tusk("train", "--resume", tmp_path / "run").returncode == 0
    assert load_model(model).provenance["command"] == began


def test_a_dataset_that_was_asked_for_is_not_changed(pictures):
    done = tusk("train", pictures, "--preset", "mnist-hard", "--data.dataset=mnist-hard")
    assert_sentence(done, 3, str(pictures), "idx")


def test_without_pictures_the_preset_says_what_it_wants(tmp_path):
    done = tusk("train", tmp_path, "--preset", "mnist-hard")
    assert_sentence(done, 3, str(tmp_path), "idx")


def test_whole_pictures_where_that_is_asked_for(pictures, tmp_path):
    small = ("--training.steps", 1, "--training.batch", 4, "--data.size", 32, "--keypoints", 3, "--types", 2)
    flags = ("--data.fit", "letterbox", "--data.contrast=own", "--model.window", 5, "--out", tmp_path / "run")
    done = tusk("train", pictures, "--preset", "mnist-hard", *small, *flags)
    assert done.returncode == 0, done.stderr
    assert "8 images of pictures, 3 keypoints, 2 types" in done.stderr
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (config["data"]["fit"], config["data"]["contrast"]) == ("letterbox", "own")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("digits", "--data.fit", "tiles"), ("data.fit", "ready-made")),
        (("PICTURES", "--data.scale", "0.5"), ("data.scale", "0.5 has no effect", "centre-crop")),
    ],
)
def test_what_would_have_no_effect_is_refused(pictures, tmp_path, flags, words):
    flags = [pictures if flag == "PICTURES" else flag for flag in flags]
    assert_sentence(tusk("train", *flags, "--out", tmp_path / "run"), 2, *words)
    assert not (tmp_path / "run").exists()
