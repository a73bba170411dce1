"""`tusk names` as a user meets it, and what the other verbs make of the names."""

import csv
import json

import pytest
from PIL import Image

import tusk
from tests.cli.test_main import assert_sentence
from tests.cli.test_main import tusk as command
from tests.detection.bright import blob, bright_model
from tusk.cli.main import main
from tusk.errors import UserError
from tusk.model.storage import save_model


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A model in a run's folder, and two pictures."""
    monkeypatch.chdir(tmp_path)
    save_model(tmp_path / "run" / "model.safetensors", bright_model())
    (tmp_path / "pictures").mkdir()
    for number in range(2):
        Image.fromarray(blob(64, 64, 20 + 10 * number, 30, 3)).save(tmp_path / "pictures" / f"{number}.png")
    return tmp_path


def said(capsys, *args):
    main(["names", "run", *args])
    return capsys.readouterr()


@pytest.mark.usefixtures("place")
def test_names_from_the_shell(capsys):
    assert said(capsys).out.splitlines() == ["   0  (no name)", "   1  (no name)", "   2  (no name)"]
    done = said(capsys, "set", "1", "white cell")
    assert done.err == "Now type 1 is called 'white cell'.\n" and done.out.strip().endswith("names.json")
    said(capsys, "merge", "White Cell", "2")
    said(capsys, "hide", "0")
    said(capsys, "colour", "1", "#00ff00")
    assert said(capsys, "list").out.splitlines() == ["   0  (no name) (hidden)", "   1  white cell (with 2 in it)"]
    listed = json.loads(said(capsys, "list", "--json").out)
    assert listed[1] == {"type": 1, "name": "white cell", "colour": "#00ff00", "hidden": False, "merged": [2]}
    assert said(capsys, "undo").err == "Undone: type 1 has the colour #00ff00.\n"
    assert said(capsys, "redo").err.startswith("Done again")
    assert len(said(capsys, "history").out.splitlines()) == 4
    said(capsys, "split", "1")  # it holds two prototypes since the merge
    assert [one["type"] for one in json.loads(said(capsys, "list", "--json").out)] == [0, 1, 3]


def test_all_else_is_sorted_by_what_pictures_show(tmp_path, capsys):
    digits = tusk.datasets.open("digits", split="test", count=3)
    for number in range(3):
        Image.fromarray(digits.image(number)).save(tmp_path / f"{number}.png")

    def run(*words):
        main(["names", "mnist-hard", *words, "--names", str(tmp_path / "names.json")])
        return capsys.readouterr()

    run("set", "1", "two")
    run("set", "0", "eight")
    assert run("sort", str(tmp_path)).err == "Now 8 other types are sorted into 2 kinds.\n"
    assert run("list").out.splitlines() == ["   0  eight", "   1  two"]


def test_detect_writes_the_names(place, capsys):
    for number in range(3):
        said(capsys, "set", str(number), f"=kind {number}")
    main(["detect", "run", "pictures", "--out", "found", "--min-gain", "-100"])
    with (place / "found" / "detections.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 and all(row["name"] == f"'=kind {row['type']}" for row in rows)
    assert (place / "found" / "counts.csv").read_text().startswith("image,total,'=kind 0,'=kind 1,'=kind 2")
    coco = json.loads((place / "found" / "coco.json").read_text())
    assert [one["name"] for one in coco["categories"]] == ["=kind 0", "=kind 1", "=kind 2"]
    capsys.readouterr()
    kind = int(rows[0]["type"])
    said(capsys, "hide", str(kind))
    main(["detect", "run", "pictures", "--out", "without", "--min-gain", "-100"])
    left = (place / "without" / "detections.csv").read_text().splitlines()
    assert len(left) == 1 + sum(int(row["type"]) != kind for row in rows)
    assert kind not in tusk.load("run").names
    # A run that began under other names is not gone on with.
    with pytest.raises(UserError, match="found"):
        tusk.load("run").detect_files("pictures", "found", min_gain=-100, progress=False)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "no model was named"),
        (("mnist-hard", "nmae"), "there is no such word"),
        (("mnist-hard", "set", "1"), "it takes 2 words, not 1"),
        (("mnist-hard", "set", "77", "a"), "there is no such type"),
        (("mnist-hard", "colour", "1", "red"), "choose another"),
        (("mnist-hard", "set", "1", "a", "--nmaes", "x"), "there is no such flag"),
        (("mnist-hard", "split", "1"), "split 1 PICTURES"),
        (("mnist-hard", "list", "--device", "cuda:77"), "does not find it"),
        (("mnist-hard", "list", "--device"), "write --device WHERE"),
        (("mnist-hard", "undo"), "nothing to undo"),
    ],
)
def test_a_fault_is_one_sentence(place, args, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["names", *args])
    error = capsys.readouterr().err
    assert stop.value.code == 2 and words in error and len(error.splitlines()) == 1
    assert not (place / "runs").exists()


def test_names_of_another_model_are_refused(place):
    (place / "run" / "names.json").write_text('{"model": "0", "types": 3}')
    assert_sentence(command("detect", "run", "pictures", cwd=place), 3, "names the types of another model")
