"""`tusk doctor`: what it says, when it says that something is wrong, and its exit code."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import tusk.cli.machine
import tusk.cli.selftest
from tusk import __version__
from tusk.cli.machine import Package, allocator_words, examine_machine, faults_of, packages, parse_requirement
from tusk.cli.selftest import Outcome


def test_a_sound_machine_is_well():
    """In a process of its own, as it is run."""
    done = subprocess.run(
        [sys.executable, "-m", "tusk", "doctor"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "All is well."
    said = {line.partition(" ")[0]: line for line in lines}
    assert f"tusk {__version__}" in said["tusk"] and torch.__version__ in said["packages"]
    assert "torch uses 1" in said["cores"] and "mnist-hard" in said["models"] and " to " in said["training"]
    assert {"python", "device", "memory", "allocator", "disk", "data", "detection", "files"} <= set(said)


def test_json_and_faults(capsys, monkeypatch):
    from tusk.cli.main import main

    monkeypatch.setattr(
        tusk.cli.selftest, "run_self_tests", lambda _: [Outcome("training", False, "It broke: repair it.")]
    )
    monkeypatch.setattr(tusk.cli.machine, "usable_cores", lambda: 0)
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert stop.value.code == 1 and values["well"] is False
    assert any("OMP_NUM_THREADS" in fault for fault in values["faults"]) and "It broke: repair it." in values["faults"]
    assert values["machine"]["models"] == ["blood-cells", "clevr6", "mnist-hard", "tetrominoes"]
    with pytest.raises(SystemExit) as stop:
        main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert stop.value.code == 1 and "It broke: repair it." in lines and "All is well." not in lines


def test_each_fault_is_one_sentence_with_what_to_do(tmp_path):
    machine = examine_machine()
    sound = replace(machine, cores=8, threads=8, memory_free=4 << 30, disk_free=4 << 30, data_folder=str(tmp_path))
    fine = Package("numpy", "2.1", "1.26", "")
    assert faults_of(sound, [fine, Package("tensorboard", None, "2.16", "track")]) == []
    (tmp_path / "file").write_text("")
    wrong = [
        (replace(sound, threads=9), fine, "9 threads on 8 cores"),
        (replace(sound, memory_free=1 << 29), fine, "0.5 GB of memory"),
        (replace(sound, disk_free=1 << 29), fine, "0.5 GB of disk"),
        (replace(sound, models=()), fine, "install tusk again"),
        (replace(sound, data_folder=str(tmp_path / "file")), fine, "XDG_DATA_HOME"),
        (sound, Package("scipy", None, "1.12", ""), "scipy is not installed"),
        (sound, Package("numpy", "1.9.0", "1.26", ""), "numpy 1.9.0 is older than tusk needs: install numpy 1.26"),
    ]
    for machine, package, words in wrong:
        (fault,) = faults_of(machine, [package])
        assert words in fault and fault.endswith(".") and "\n" not in fault


def test_requirements_are_read_as_they_are_written():
    assert parse_requirement("torch>=2.10") == ("torch", "2.10", "")
    assert parse_requirement('google-crc32c >= 1.5 ; extra == "data"') == ("google-crc32c", "1.5", "data")
    assert parse_requirement("types-PyYAML; extra == 'dev'") == ("types-PyYAML", "", "dev")
    assert Package("torch", "2.13.0+cpu", "2.10", "").fits and not Package("torch", "2.9.1", "2.10", "").fits
    found = {package.name: package for package in packages()}
    assert found["torch"].version == importlib.metadata.version("torch") and found["torch"].fits
    assert found["tensorboard"].extra == "track" and "pytest" not in found


def test_the_allocator_says_why_not(monkeypatch):
    monkeypatch.setenv("TUSK_ALLOCATOR", "off")
    assert "TUSK_ALLOCATOR=off" in allocator_words()
    monkeypatch.delenv("TUSK_ALLOCATOR")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert "Linux" in allocator_words()


def test_a_damaged_model_and_a_broken_step_are_reported_apart(monkeypatch, tmp_path):
    (tmp_path / "broken.safetensors").write_bytes(b"junk")
    damaged = {"broken": tmp_path / "broken.safetensors"}
    monkeypatch.setattr(tusk.cli.selftest, "shipped_models", lambda: damaged)
    monkeypatch.setattr("tusk.weights.shipped_models", lambda: damaged)

    def fail(*_):
        raise RuntimeError("no such kernel\nlong trace")

    monkeypatch.setattr(tusk.cli.selftest.Trainer, "train_step", fail)
    training, detection, files = tusk.cli.selftest.run_self_tests()
    assert not training.well and "RuntimeError: no such kernel)" in training.words and "long" not in training.words
    assert not detection.well and "broken.safetensors" in detection.words
    assert files.well


def test_an_error_that_does_not_fall_and_points_beside_the_objects_are_faults(monkeypatch):
    """Values that are numbers, but wrong ones."""

    class Beside:
        def __init__(self, name, device):
            self._model = load(name, device)

        def detect(self, images, **settings):
            return [replace(found, xy=found.xy * 0) for found in self._model.detect(images, **settings)]

    load = tusk.load
    monkeypatch.setattr(
        tusk.cli.selftest.Trainer, "train_step", lambda *_: SimpleNamespace(losses={"reconstruction": 0.1})
    )
    monkeypatch.setattr(tusk, "load", Beside)
    training, detection, _ = tusk.cli.selftest.run_self_tests()
    assert not training.well and "does not fall" in training.words
    assert not detection.well and "too few" in detection.words and "found 0 of" in detection.words
