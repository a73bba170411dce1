"""Training and detection that are asked to stop while an operation does not come back."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pictures import save_squares
from tests.system.test_training import SMALL
from tusk.config import Config
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, save_model

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "pictures").mkdir()
    save_squares(tmp_path / "pictures", 6)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    return tmp_path


def under_way(place, what, *words):
    command = [sys.executable, "-m", "tests.system.scripted", what, *map(str, words)]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not (place / "under-way").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.3)
    return process


def ended(process, *words):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == "" and "Traceback" not in err, err
    last = err.strip().splitlines()[-1]
    assert last.startswith("tusk: ") and all(word in last for word in words), err


def test_a_first_step_that_takes_for_ever_ends_soon_and_the_run_goes_on_later(place):
    process = under_way(place, "stuck-step", "train", "pictures", *SMALL, "--training.steps", "3", "--out", "run")
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    ended(process, "run: ended at once", "--resume")
    assert time.monotonic() - asked < 30  # five seconds, and what a busy machine adds
    assert json.loads((place / "run" / "checkpoints" / "last.json").read_text())["step"] == 0
    command = [sys.executable, "-m", "tusk", "train", "--resume", "run"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_second_signal_ends_a_training_at_once(place):
    process = under_way(place, "stuck-step", "train", "pictures", *SMALL, "--out", "run")
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    ended(process, "run: ended at once")
    assert time.monotonic() - asked < 4


def test_a_second_signal_ends_a_detection_at_once_and_it_goes_on_later(place):
    settings = {"keypoints": 3, "types": 4, "channels": 6, "width": 4, "levels": 2, "window": 7}
    config = Config.model_validate({"model": settings, "data": {"size": 32}})
    save_model(place / "model.safetensors", StoredModel(seeded_network(config.model, 0), config))
    words = ("detect", "model.safetensors", "pictures", "--out", "found")
    process = under_way(place, "stuck-detection", *words)
    process.send_signal(signal.SIGTERM)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    ended(process, "tusk detect: ended at once", "kept")
    assert time.monotonic() - asked < 4
    done = subprocess.run([sys.executable, "-m", "tusk", *words], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0 and (place / "found" / "detections.csv").is_file(), done.stderr
