"""How a run begins and goes on: with its own pictures, from any folder, where the memory suffices."""

import json
import shutil

import pytest
import yaml

import tusk
from tests.pictures import save_squares
from tusk.api.runs import report_run
from tusk.config import Config
from tusk.data.listing import NAME
from tusk.errors import DataError, UsageError, UserError
from tusk.training import start
from tusk.training.start import new_job

SMALL = {
    "data": {"size": 32},
    "model": {"channels": 6, "width": 4, "levels": 2, "window": 7},
    "training": {"batch": 8, "steps": 2, "evaluate_every": 2},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A project with pictures and a run on them, by a relative path."""
    project = tmp_path_factory.mktemp("project")
    (project / "photos").mkdir()
    save_squares(project / "photos", 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(project / "cache"))
        patch.chdir(project)
        tusk.train("photos", keypoints=3, types=4, out="run", progress=False, **SMALL)
    return project


@pytest.fixture
def project(trained, monkeypatch, tmp_path):
    """The same to change; the current folder is another one, which also has pictures of that name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = tmp_path / "kept"
    shutil.copytree(trained / "photos", kept)
    shutil.copytree(trained / "run", tmp_path / "run")
    (tmp_path / "elsewhere" / "photos").mkdir(parents=True)
    save_squares(tmp_path / "elsewhere" / "photos", 2)
    monkeypatch.chdir(tmp_path / "elsewhere")
    yield trained
    shutil.rmtree(trained / "photos")
    shutil.copytree(kept, trained / "photos")  # with the dates that they had


def test_a_run_goes_on_and_is_shown_from_any_folder(project, tmp_path, capsys):
    run = tmp_path / "run"
    assert yaml.safe_load((run / "config.yaml").read_text())["data"]["source"] == str(project / "photos")
    head, *files = map(json.loads, (run / NAME).read_text().splitlines())
    assert head["files"] == len(files) == 6 and files[0][0] == str(project / "photos" / "0.png")
    model = tusk.train(resume=run)
    assert model.path == run / "model.safetensors"
    assert "-pixel tiles of photos, 3 keypoints in each" in capsys.readouterr().err
    page = report_run(str(run), tmp_path / "page.html", None, 10).path.read_text()
    assert "10 images of photos" in page


def test_other_pictures_are_refused_and_the_change_is_said(project, tmp_path):
    save_squares(project / "photos", 7)  # the seventh is new
    (project / "photos" / "0.png").unlink()
    words = r"not those that it (began with|learnt from) \(1 gone, 1 new\)"
    before = {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    with pytest.raises(DataError, match=words):
        tusk.train(resume=tmp_path / "run", progress=False)
    with pytest.raises(DataError, match=words + ".*--data"):
        report_run(str(tmp_path / "run"), tmp_path / "page.html", None, 10)
    assert {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()} == before
    shown = report_run(str(tmp_path / "run"), tmp_path / "page.html", str(project / "photos"), 10)
    assert shown.path.is_file(), "pictures that are named are not compared"


def test_a_run_of_an_older_version_says_once_that_it_cannot_compare(project, tmp_path, capsys):
    run = tmp_path / "run"
    (run / NAME).unlink()
    for times in (1, 0):
        tusk.train(resume=run)
        assert capsys.readouterr().err.count("does not say which pictures") == times
    save_squares(project / "photos", 7)
    with pytest.raises(DataError, match="1 new"):
        tusk.train(resume=run, progress=False)


def test_a_folder_that_is_called_as_a_home_is_is_that_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for folder in ("~", "home"):
        (tmp_path / folder).mkdir()
    save_squares(tmp_path / "~", 3)
    save_squares(tmp_path / "home", 4)
    config = Config.model_validate({"data": {"source": "~"}})
    assert new_job(config, "tusk train").config.data.source == tmp_path / "~"
    shutil.rmtree(tmp_path / "~")
    assert new_job(config, "tusk train").config.data.source == tmp_path / "home"


def test_what_cannot_fit_is_refused_before_a_folder_is_made(project, tmp_path, capsys):
    huge = {**SMALL, "training": {**SMALL["training"], "batch": 1_000_000}}
    with pytest.raises(UserError, match=r"^training.batch 1000000: this needs about [\d.]+ GB of memory, and [\d.]+ "):
        tusk.train(project / "photos", keypoints=3, types=4, out=tmp_path / "huge", **huge)
    assert not (tmp_path / "huge").exists()
    tusk.train(project / "photos", keypoints=3, types=4, out=tmp_path / "small", **SMALL)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Needs about 0.5 GB of ")]
    assert len(lines) == 1 and "GB of free memory." in lines[0]


class _Second:
    """The second of two processes: it is told what the first one wrote."""

    rank, world, is_main = 1, 2, False

    def broadcast(self, make):
        del make
        return "written by the first\n"

    def together(self, work):
        return work()


def test_a_folder_that_the_machines_do_not_share_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "_SEEN_WITHIN", 0.0)
    with pytest.raises(UsageError, match=r"process 1 on .* does not see what the first process wrote there; give"):
        start._check_shared(tmp_path, _Second())
    (tmp_path / "config.yaml").write_text("of another run\n")
    with pytest.raises(UsageError, match="does not see"):
        start._check_shared(tmp_path, _Second())
    (tmp_path / "config.yaml").write_text("written by the first\n")
    start._check_shared(tmp_path, _Second())
