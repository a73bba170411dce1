"""What `tusk train SOURCE` takes a source for."""

import pytest
import yaml

from tests.pictures import save_squares
from tests.test_cli import assert_sentence, tusk


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
    assert "32-pixel pieces of pictures, 3 keypoints in each, 2 types" in done.stderr
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["data"]["dataset"] == "folder"
    assert (config["data"]["fit"], config["data"]["contrast"]) == ("pieces", "full")
    assert config["losses"]["flat"]["weight"] == 0.1, "the rest is the preset's"


def test_a_dataset_that_was_asked_for_is_not_changed(pictures):
    done = tusk("train", pictures, "--preset", "mnist-hard", "--data.dataset=mnist-hard")
    assert_sentence(done, 3, str(pictures), "idx")


def test_without_pictures_the_preset_says_what_it_wants(tmp_path):
    done = tusk("train", tmp_path, "--preset", "mnist-hard")
    assert_sentence(done, 3, str(tmp_path), "idx")
