"""What `tusk train SOURCE` takes a source for."""

from pathlib import Path

import pytest
import yaml
from PIL import Image

from tests.cli.test_main import assert_sentence, tusk
from tests.pictures import save_squares
from tests.report.reader import read_page
from tusk.api.training import train
from tusk.cli import main as cli
from tusk.cli.main import main
from tusk.errors import DataError
from tusk.model.storage import load_model
from tusk.presets import load_config


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


def test_the_last_line_says_whether_to_trust_the_points(pictures, tmp_path, capsys):
    small = ("--training.steps", 2, "--training.batch", 4, "--data.size", 32, "--keypoints", 3, "--model.window", 5)
    small = ("--preset", "folder/plain", *small)
    run = tmp_path / "run"
    main([str(word) for word in ("train", pictures, *small, "--seeds", 2, "--out", run)])
    out, err = capsys.readouterr()
    assert out == f"{run / 'model.safetensors'}\n"
    last = err.strip().splitlines()[-1]
    assert last.startswith(("Do not trust these points yet: ", "Use these points with care: "))
    assert last in read_page((run / "report.html").read_text()).text, "it is that of the seed that was kept"


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
        (
            ("PICTURES", "--preset", "folder/plain", "--data.scale", "0.5"),
            ("data.scale", "0.5 has no effect", "centre-crop"),
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(pictures, tmp_path, flags, words):
    flags = [pictures if flag == "PICTURES" else flag for flag in flags]
    assert_sentence(tusk("train", *flags, "--out", tmp_path / "run"), 2, *words)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def trained(capsys):
    """`tusk train` in this process: most of a small training's time is the start of another."""

    def run(*args):
        small = ("--training.steps", 1, "--training.batch", 4, "--data.size", 16, "--keypoints", 2, "--types", 2)
        network = ("--model.window", 5, "--model.width", 4, "--model.channels", 4, "--preset", "folder/plain")
        cli.main(["train", *map(str, (*args[:1], *small, *args[1:], *network))])
        return capsys.readouterr()

    return run


def test_several_sources_whatever_they_are_called(trained, tmp_path, monkeypatch):
    names = ["*.png", "2024", "2024-01-01", "yes", "[x]", "a: b"]
    for name in names:
        (tmp_path / "in" / name).mkdir(parents=True)
        save_squares(tmp_path / "in" / name, 2)
    monkeypatch.chdir(tmp_path / "in")
    done = trained(*names)
    assert done.out == "runs/train/in/model.safetensors\n"
    assert "Pictures: 12 read; none skipped\n" in done.err and "12 images of in, 2 keypoints" in done.err
    model = load_model(Path("runs/train/in/model.safetensors"))
    assert "[x]" in model.provenance["command"] and [Path(one).name for one in model.config.data.sources] == names
    assert load_config(None, Path("runs/train/in/config.yaml")) == model.config, "the run's file reads back"
    # The run itself lies below what is read now.
    again = trained(".")
    assert again.out == "runs/train/in-2/model.safetensors\n"
    assert "Pictures: 12 read; none skipped; skipped 1 folder with results of tusk: runs/train/in\n" in again.err
    with pytest.raises(DataError, match="only results of tusk"):
        train("runs/train/in", progress=False)


def test_before_it_starts_it_says_what_it_will_see(trained, pictures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (pictures / "broken.png").write_bytes(b"")
    (pictures / "notes.png").write_text("no picture")
    wide = [Image.new("RGB", (64, 32), (grey, 0, 0)) for grey in (9, 99, 199)]
    wide[0].save(pictures / "stack.tif", save_all=True, append_images=wide[1:])
    done = trained(f"{pictures}/*")
    assert done.out == "runs/train/pictures/model.safetensors\n", "a pattern is called by its folder"
    lines = done.err.splitlines()
    assert lines[0] == "Results go to runs/train/pictures"
    reasons = "the file is empty: 1, is not a picture of a known format: 1"
    assert lines.pop(1).startswith("Training on the CPU")
    assert lines[1].startswith(f"Pictures: 9 read; 2 skipped ({reasons})")
    assert "listed in runs/train/pictures/skipped.csv; ignored 2 frames in 1 multi-page file" in lines[1]
    assert "centre-crop" in lines[2] and "6% of the picture is cropped away" in lines[2]
    assert "scaled by 0.50" in lines[2]
    assert lines[3].startswith("9 images of pictures, 2 keypoints, 2 types; things are expected to be about 10 pixels")
    assert lines[4].startswith("Warning: only 9 pictures")
    rows = Path("runs/train/pictures/skipped.csv").read_text().splitlines()
    assert len(rows) == 3 and any("broken.png,the file is empty" in row for row in rows)
    every = trained(pictures, "--frames", "all")
    assert "Pictures: 11 read" in every.err and "ignored" not in every.err
    assert load_model(Path(every.out.strip())).config.data.frames == "all"
