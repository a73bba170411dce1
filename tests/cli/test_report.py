"""`tusk report` as a user meets it: what RUN may be, what is written, one sentence for a fault."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.pictures import save_squares
from tests.report.reader import read_page
from tests.training.test_run import CONFIG, run_in
from tusk.cli.main import main
from tusk.presets import to_yaml
from tusk.training.seeds import store_seeds


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder whose name is no name for a page."""
    folder = tmp_path_factory.mktemp("pictures") / "<b>cats & dogs<"
    folder.mkdir()
    save_squares(folder, 8)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory, pictures):
    folder = tmp_path_factory.mktemp("runs") / "run"
    folder.mkdir()
    data = CONFIG.data.model_copy(update={"source": pictures})
    config = CONFIG.model_copy(update={"data": data})
    (folder / "config.yaml").write_text(to_yaml(config))
    run_in(folder, config).train(resume=False)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def tusk(capsys, *args):
    """-> exit code, stdout, stderr."""
    code = 0
    try:
        main([str(arg) for arg in args])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys, args, code, *words):
    got, out, err = tusk(capsys, "report", *args)
    assert got == code and out == "", err
    assert err.startswith("tusk: ") and len(err.strip().splitlines()) == 1
    assert all(word in err for word in words), err


def test_a_finished_run_of_pictures_without_truth(capsys, finished, pictures, tmp_path):
    before = {file: file.read_bytes() for file in [*finished.rglob("*"), *pictures.iterdir()] if file.is_file()}
    code, out, err = tusk(capsys, "report", finished)
    assert code == 0 and out == f"{finished / 'report.html'}\n", err
    page = read_page((finished / "report.html").read_text())
    assert page.ids == ["state", "run", "images", "types", "curves"]
    assert "What tusk learnt from <b>cats & dogs<" in page.text and "which it learnt from" in page.text
    assert "8 images of" in page.text and "tusk train" in page.text and "3 in an image, 4 types" in page.text
    assert all(file.read_bytes() == content for file, content in before.items()), "nothing else is changed"
    code, out, _ = tusk(capsys, "report", finished, "--out", tmp_path / "a" / "b.html", "--count", 3)
    assert code == 0 and out == f"{tmp_path / 'a' / 'b.html'}\n"
    assert "3 images of" in read_page((tmp_path / "a" / "b.html").read_text()).text
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["b.html"]


def test_an_unfinished_run_without_logs(capsys, finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for name in ("model.safetensors", "metrics.jsonl", "results.csv", "report.html"):
        (run / name).unlink(missing_ok=True)
    code, _, err = tusk(capsys, "report", run)
    assert code == 0, err
    page = read_page((run / "report.html").read_text())
    assert "not finished: this is its state after 12 steps" in page.text and "curves" not in page.ids
    text = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(text.replace("types: 4", "types: 5"))
    refused(capsys, [run], 3, "belongs to another configuration")
    (run / "config.yaml").write_text(text)
    manifest = json.loads((run / "checkpoints" / "last.json").read_text())
    (run / "checkpoints" / manifest["file"]).write_bytes(b"half")
    refused(capsys, [run], 3, manifest["file"])
    shutil.rmtree(run / "checkpoints")
    refused(capsys, [run], 3, "neither a model nor a checkpoint")


def test_the_kept_one_of_several_seeds(capsys, finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run / "seed-0")
    shutil.copy(finished / "config.yaml", run)
    store_seeds(run, [0, 1])
    refused(capsys, [run], 3, "none is chosen yet", "seed-0")
    shutil.copy(finished / "model.safetensors", run)
    code, _, err = tusk(capsys, "report", run)
    assert code == 0, err
    assert "curves" in read_page((run / "report.html").read_text()).ids


def test_a_model_by_its_name_on_a_dataset(tmp_path):
    """The one test in a process of its own: nothing but the page's path goes to stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "tusk", "report", "mnist-hard", "--data", "digits", "--count", "4"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout == "runs/report/mnist-hard/report.html\n", done.stderr
    page = read_page((tmp_path / done.stdout.strip()).read_text())
    assert page.ids == ["state", "run", "images", "types", "confusion"]
    assert "of 36 things" in page.text and "4 images of digits" in page.text and "Traceback" not in done.stderr


def test_bad_inputs_are_one_sentence(capsys, finished, tmp_path):
    refused(capsys, [tmp_path / "none"], 3, "no such model or file")
    refused(capsys, [tmp_path], 3, "there is no run in it")
    refused(capsys, [finished, "--count", 0], 2, "--count")
    refused(capsys, [finished, "--out", tmp_path], 2, "it is a folder")
    refused(capsys, [finished, "--data", tmp_path / "nothing"], 3, "no such file or folder")
    refused(capsys, [finished, "--data", "celeba"], 2, "celeba")
    refused(capsys, [finished, "--date", "x"], 2, "--date")
    (tmp_path / "file").write_text("mine")
    refused(capsys, [finished, "--out", tmp_path / "file" / "page.html"], 2, "cannot be written", "--out")
    (tmp_path / "model.safetensors").write_bytes(b"junk")
    refused(capsys, [tmp_path], 3, "not a readable safetensors file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_model_that_names_no_images_asks_for_them(capsys, finished, tmp_path):
    from tusk.model.storage import StoredModel, load_model, save_model

    model = load_model(finished / "model.safetensors")
    bare = model.config.model_copy(update={"data": model.config.data.model_copy(update={"source": None})})
    save_model(tmp_path / "bare.safetensors", StoredModel(model.network, bare))
    refused(capsys, [tmp_path / "bare.safetensors"], 2, "--data", "which images")


def test_a_folder_that_a_model_file_names_is_opened_only_when_told(capsys, finished, pictures, tmp_path, monkeypatch):
    shutil.copy(finished / "model.safetensors", tmp_path / "sent.safetensors")
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("tusk.report.subject.open_dataset", lambda *asked: opened.append(asked))
    refused(capsys, ["sent.safetensors"], 2, "--data", str(pictures), "not opened unasked", "--trust-source")
    assert not opened and not (tmp_path / "runs").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    code, _, err = tusk(capsys, "report", "sent.safetensors", "--trust-source", "--count", 2)
    assert code == 0, err
    code, _, err = tusk(capsys, "report", "sent.safetensors", "--data", pictures, "--count", 2)
    assert code == 0, err
    code, _, err = tusk(capsys, "report", finished, "--out", tmp_path / "own.html", "--count", 2)
    assert code == 0, "the folder of a run is one's own"
