"""Detection as processes: killed at any moment, shared by several, under torchrun."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tusk.cli import main as cli
from tusk.config import Config
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, save_model

RESULTS = ("detections.csv", "counts.csv", "coco.json", "unreadable.csv", "manifest.json")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    settings = {"keypoints": 3, "types": 4, "channels": 6, "width": 4, "levels": 2, "window": 7, "decode": "layers"}
    config = Config.model_validate({"model": settings, "data": {"size": 32}})
    save_model(path, StoredModel(seeded_network(config.model, 0), config))
    return path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for number in range(80):
        height, width = (24, 36) if number % 3 else (40, 40)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    (folder / "77.png").write_bytes(b"no picture")
    return folder


@pytest.fixture(scope="module")
def environment():
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]),
    }


def tree(folder):
    """Every file with its content, hidden ones too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_killed_at_any_moment_and_run_again_the_results_are_the_same_to_the_byte(
    model, pictures, environment, tmp_path
):
    script = Path(__file__).with_name("detect_kills.py")
    command = [sys.executable, script, model, pictures, tmp_path, "10", "--masks", "--min-gain", "-1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("10 random kills")
    whole = tree(tmp_path / "unbroken")
    assert set(RESULTS) <= whole.keys() and len(whole) == len(RESULTS) + 79  # a mask for every picture
    assert whole["unreadable.csv"].count(b"77.png") == 1
    counted = whole["counts.csv"].splitlines()
    assert len(counted) == 1 + 79 and not any(line.startswith(b"77.png") for line in counted)
    runs = [folder for folder in tmp_path.iterdir() if folder.name != "unbroken"]
    assert len(runs) >= 15
    for folder in runs:
        assert tree(folder) == whole, folder


def test_shares_and_processes_of_torchrun_end_with_the_results_of_one_process(
    model, pictures, environment, tmp_path, capsys
):
    one, many, ran = (tmp_path / name for name in ("one", "many", "ran"))
    base = ["detect", str(model), str(pictures), "--out"]
    cli.main([*base, str(one)])
    assert capsys.readouterr().out.strip() == str(one)
    for share in (3, 1):
        cli.main([*base, str(many), "--shard", f"{share}/3"])
        assert not (many / "detections.csv").exists() and capsys.readouterr().out == ""
    cli.main([*base, str(many), "--shard", "2/3"])
    assert capsys.readouterr().out.strip() == str(many)
    assert tree(many) == tree(one)
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tusk", *base, ran],
            env={**environment, "WORLD_SIZE": "2", "RANK": str(rank)},  # as torchrun sets them
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert str(ran) in said
    assert tree(ran) == tree(one)
