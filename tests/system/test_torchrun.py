"""Several processes under torchrun: refused together, told of a death, started again, one seed after the other."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.pictures import save_squares
from tests.system.test_training import SMALL, weights

ROOT = Path(__file__).parents[2]
SHORT = [*SMALL, "--training.steps", "20"]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "pictures").mkdir()
    save_squares(tmp_path / "pictures", 6)
    return tmp_path


def torchrun(place, *words, restarts=0):
    """-> torchrun's exit code, and the stderr of each process of the last attempt."""
    logs = Path(tempfile.mkdtemp(dir=place, prefix="logs-"))
    launcher = [
        "--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts),
        "--redirects", "3", "--log-dir", str(logs), "-m", "tests.system.scripted",
    ]  # fmt: skip
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(place / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }  # fmt: skip
    command = [sys.executable, "-m", "torch.distributed.run", *launcher, *map(str, words)]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=400)
    last = max(logs.glob("*/attempt_*"))
    return done.returncode, [(last / rank / "stderr.log").read_text() for rank in ("0", "1")]


def sentences(errors):
    assert not any("Traceback" in text for text in errors), "\n".join(errors)
    return [line for text in errors for line in text.splitlines() if line.startswith("tusk: ")]


def test_what_is_refused_on_one_process_ends_all_with_one_sentence(place):
    good = ["train", "pictures", *SHORT, "--out", "run"]
    bad = ["train", "nowhere", *SHORT]  # as where one machine of several lacks the data
    code, errors = torchrun(place, "other-words", *good, "--", *bad)
    (sentence,) = sentences(errors)
    assert code == 1 and "nowhere: there is no such file or folder" in sentence and sentence in errors[1]
    assert not (place / "run").exists()
    flag = ["train", "pictures", "--model.keypoint", "3"]  # what is refused on all is said once
    _, errors = torchrun(place, "other-words", *flag, "--", *flag)
    (sentence,) = sentences(errors)
    assert "model.keypoint" in sentence and sentence in errors[0]


def test_the_death_of_a_process_is_one_sentence_of_the_other(place):
    code, errors = torchrun(place, "dies", 3, "train", "pictures", *SHORT, "--out", "run")
    assert code == 1 and sentences(errors) == [
        "tusk: torchrun: another of the 2 processes ended; see what it said; --resume run goes on."
    ]
    assert errors[1] == "" or "Traceback" not in errors[1]


def test_a_restart_goes_on_with_its_own_run_and_seeds_come_one_after_the_other(place):
    """Beside another run of that name: without --out, that was taken for the one to go on with."""
    other = place / "runs" / "train" / "pictures"
    other.mkdir(parents=True)
    (other / "config.yaml").write_text("another run\n")
    words = ("dies", 3, "train", "pictures", *SHORT, "--training.steps", "6", "--seeds", "2")
    code, errors = torchrun(place, *words, restarts=1)
    assert code == 0, "\n".join(errors)
    assert [file.name for file in other.iterdir()] == ["config.yaml"]
    own = place / "runs" / "train" / "pictures-2"
    assert sorted(folder.name for folder in own.parent.iterdir()) == ["pictures", "pictures-2"]
    assert [line.split(",")[0] for line in (own / "seeds.csv").read_text().splitlines()] == ["seed", "0", "1"]
    assert weights(own) in (weights(own / "seed-0"), weights(own / "seed-1"))


def test_a_restart_after_a_refusal_does_not_go_on_with_the_run_in_the_way(place):
    other = place / "run"
    other.mkdir()
    (other / "config.yaml").write_text("another run\n")
    code, errors = torchrun(place, "none", "train", "pictures", *SHORT, "--out", "run", restarts=1)
    (sentence,) = sentences(errors)
    assert code == 1 and "the folder is not empty" in sentence
    assert [file.name for file in other.iterdir()] == ["config.yaml"]
