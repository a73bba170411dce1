"""What the words of a command are taken for, and what is refused before anything is opened."""

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.pictures import save_squares
from tusk.cli import main as cli
from tusk.cli.detect import detect
from tusk.cli.flags import room_for
from tusk.cli.words import NUMBERS, TEXTS, flags_of, split_words


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """Runs a command that must end in one sentence, and leave nothing behind; -> the sentence."""
    monkeypatch.chdir(tmp_path)

    def run(*args, code=2):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(SystemExit) as end:
            cli.main([*map(str, args)])
        said = capsys.readouterr()
        assert end.value.code == code, said.err
        lines = said.err.strip().splitlines()
        assert len(lines) == 1 and lines[0].startswith("tusk: ") and said.out == "", said.err
        assert sorted(tmp_path.rglob("*")) == before
        return lines[0]

    return run


@pytest.mark.parametrize(
    ("words", "plain", "flags"),
    [
        ("a.png --one 3 b.png", "a.png b.png", "--one 3"),
        ("--none a.png --one=3 b.png", "a.png b.png", "--none --one=3"),
        ("--one -3 -", "-", "--one -3"),
        ("--numbers 0 0.5 1e-3 -2 photos 2024", "photos 2024", "--numbers 0 0.5 1e-3 -2"),
        ("--texts 2024 [x] yes --none *.png", "*.png", "--texts 2024 [x] yes --none"),
        ("--none -- --one -x.png --", "--one -x.png --", "--none"),
    ],
)
def test_flags_and_words_in_any_order(words, plain, flags):
    rooms = {"--none": 0, "--one": 1, "--numbers": NUMBERS, "--texts": TEXTS}
    sorted_words = split_words(words.split(), rooms.__getitem__)
    assert (sorted_words.plain, sorted_words.flags) == (plain.split(), flags.split())


def test_how_many_values_a_setting_takes():
    rooms = {
        "--model.keypoints": 1, "--model.count-border": 0, "--model.no-count-border": 0, "--data.fit": 1,
        "--training.variance": NUMBERS, "--training.prototype-restarts": NUMBERS, "--data.source": TEXTS,
        "--data.dataset": 1, "--training.second-warp.surroundings": NUMBERS, "--no.such": 1,
    }  # fmt: skip
    assert {flag: room_for(flag) for flag in rooms} == rooms
    flags = flags_of(detect)
    assert flags["--min-gain"] == 1 and flags["--json"] == flags["--no-overlays"] == 0
    assert not {"--model", "--source", "--rows", "--detection"} & flags.keys()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["train", ""], ["SOURCE", "empty text"]),
        (["train", "a.png", ""], ["SOURCE", "empty text"]),
        (["train", "--data.source", ""], ["data.source", "an empty text is no path"]),
        (["train", "--data.source="], ["data.source", "an empty text is no path"]),
        (["detect", "mnist-hard", ""], ["SOURCE", "empty text"]),
        (["detect", "mnist-hard", "-", "a.png"], ["SOURCE -", "beside other sources"]),
        (["evaluate", "mnist-hard", "--data", "mnist-hard", "--source", ""], ["source", "empty text"]),
        (["report", "mnist-hard", "--data", ""], ["source", "empty text"]),
        (["data", "info", ""], ["source", "empty text"]),
        (["train", "-"], ["SOURCE -", "text file"]),
        (["train", "a.png", "--data.source", "b.png"], ["--data.source", "beside SOURCE (a.png)"]),
        (["train", "--keypoints", "3", "--model.keypoints", "4"], ["--model.keypoints", "beside --keypoints"]),
        (["train", "--model.types=4", "--types=4"], ["--types", "beside --model.types"]),
        (["train", "--seed", "1", "--training.seed", "1"], ["--training.seed", "beside --seed"]),
        (["train", "--frames", "all", "--data.frames", "all"], ["--data.frames", "beside --frames"]),
        (["train", "digits", "--data.dataset", "mnist-hard"], ["data.dataset", "named already (digits)"]),
        (["train", "photos", "--keypoint", "3"], ["--keypoint", "no such flag", "did you mean '--keypoints'?"]),
        (["train", "photos", "--minuts=3"], ["--minuts", "did you mean '--minutes'?"]),
        (["train", "photos", "--zzzzzzzz"], ["--zzzzzzzz", "no such flag", "tusk train --help"]),
        (["train", "photos", "-k", "3"], ["-k", "no such flag"]),
        (["train", "photos", "--model.keypoint", "3"], ["model.keypoint", "did you mean 'keypoints'?"]),
        (["train", "photos", "--frames", "every"], ["data.frames", "all, first"]),
        (["train", "digits", "--frames", "all"], ["data.frames", "ready-made"]),
        (["config", "--keypoints", "3"], ["--keypoints", "did you mean '--model.keypoints'?"]),
        (["config", "--model.window", "*"], ["model.window"]),
        (["detect", "mnist-hard", "photos", "--overlay"], ["--overlay", "did you mean '--overlays'?"]),
        (["detect", "mnist-hard", "photos", "--frames", "some"], ["--frames"]),
        (["detect", "m", "photos", "--min-gain", "1", "--detection.min-gain", "1"], ["--min-gain", "beside"]),
        (["evaluate", "m", "--data", "x", "--min-gain=1", "--detection.min-gain=1"], ["--min-gain", "beside"]),
        (["evaluate", "mnist-hard", "--dat", "x"], ["--dat", "did you mean '--data'?"]),
        (["data", "info", "photos", "--sheets", "x"], ["--sheets", "did you mean '--sheet'?"]),
        (["report", "mnist-hard", "--coun", "3"], ["--coun", "did you mean '--count'?"]),
        (["demo", "--minute", "3"], ["--minute", "did you mean '--minutes'?"]),
    ],
)
def test_refused_in_one_sentence(refused, args, words):
    sentence = refused(*args)
    assert all(word in sentence for word in words), sentence


def test_paths_are_never_read_as_yaml(refused):
    """They are looked for, and not found, under their own names, wherever they stand."""
    for path in ("2024", "2024-01-01", "yes", "a: b", "{", "null", "&a"):
        assert f"{path}: there is no such file" in refused("train", path, code=3)
        assert f"tusk: {path}: there is no such file" in refused("detect", "mnist-hard", "--overlays", path, code=3)
    assert "a: b: there is no such file" in refused("train", "--keypoints", 3, "a: b", code=3)
    assert "2024: there is no such file" in refused("train", "--data.source=2024", code=3)
    assert "-x: there is no such file" in refused("train", "--", "-x", code=3)
    assert "*.png: there are no pictures" in refused("train", "--types", 4, "*.png", code=3)
    assert "[x]: there are no pictures" in refused("train", "[x]", code=3)


def test_several_packed_files_are_refused(refused, tmp_path):
    for name in ("a.h5", "b.h5"):
        (tmp_path / name).touch()
    assert "opened one at a time" in refused("train", "a.h5", "b.h5")


def test_the_configuration_holds_several_sources(capsys, tmp_path):
    cli.main(["config", "--data.source", "2024", "yes", "--data.size", "32"])
    text = capsys.readouterr().out
    assert yaml.safe_load(text)["data"]["source"] == ["2024", "yes"]
    (tmp_path / "mine.yaml").write_text(text)
    cli.main(["config", "--config", str(tmp_path / "mine.yaml")])
    assert capsys.readouterr().out == text
    cli.main(["config", "--data.source", "first.png", "--data.source", "*.png"])
    assert yaml.safe_load(capsys.readouterr().out)["data"]["source"] == "*.png"
    cli.main(["config", "--config", str(tmp_path / "mine.yaml"), "--data.source=[x]"])
    assert yaml.safe_load(capsys.readouterr().out)["data"]["source"] == "[x]"


@pytest.mark.parametrize("text", ["source: 2024", "source: [a, 3]", "source: []", "source: ''", "source: {a: b}"])
def test_a_yaml_source_that_is_no_path(refused, tmp_path, text):
    (tmp_path / "mine.yaml").write_text(f"data: {{{text}}}")
    assert "data.source: " in refused("train", "--config", "mine.yaml")


def test_data_info_tells_what_it_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "2024").mkdir()
    save_squares(tmp_path / "2024", 3)
    pages = [Image.fromarray(np.full((8, 8), grey, np.uint8)) for grey in (0, 90, 180)]
    pages[0].save(tmp_path / "2024" / "stack.tif", save_all=True, append_images=pages[1:])
    cli.main(["data", "info", "2024", "--size", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert "images: 4" in lines
    assert "ignored 2 frames in 1 multi-page file (--frames all takes each as a picture)" in lines
