"""Every command and script of the README is run as it is written there, only shorter."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# What makes a command quick without changing what it does.
SHORTER = {
    "train": ["--training.steps", "2", "--training.batch", "4", "--model.width", "4"],
    "demo": ["--minutes", "0.02", "--count", "8"],
    "report": ["--count", "6"],
}
FEWER = {"evaluate": "8"}  # than its --count


def picture(path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    pixels = np.zeros((90, 120, 3), np.uint8)
    for x, y in random.integers(5, 75, (6, 2)):
        pixels[y : y + 10, x : x + 10] = random.integers(100, 255, 3)
    Image.fromarray(pixels).save(path)


def photos(folder: Path) -> None:
    (folder / "photos").mkdir()
    for number in range(6):
        picture(folder / "photos" / f"{number}.png", number)


def test_every_command_of_the_readme_runs(tmp_path):
    photos(tmp_path)
    blocks = re.findall(r"```sh\n(.*?)```", README, re.S)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("tusk ")]
    assert len(lines) >= 9
    commands = []
    serving = None
    for line in lines:
        verb, *rest = shlex.split(line, comments=True)[1:]
        if verb == "serve":  # goes on until it is ended: by itself below
            serving = rest
            continue
        if verb in FEWER:
            rest[rest.index("--count") + 1] = FEWER[verb]
        commands.append(json.dumps([verb, *rest, *SHORTER.get(verb, [])]))
    environment = os.environ | {
        "XDG_DATA_HOME": str(tmp_path / "share"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.readme_commands"],
        cwd=tmp_path, env=environment, input="\n".join(commands), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "mine" / "report.html").is_file()
    assert list((tmp_path / "runs" / "detect").glob("*/detections.csv"))
    assert serving is not None
    _serve(tmp_path, serving)


def _serve(folder: Path, words: list[str]) -> None:
    """It says where it is, and ends well."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tusk", "serve", *words, "--port", "0"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        with urllib.request.urlopen(process.stdout.readline().strip(), timeout=60) as page:
            assert b"<html" in page.read()
        process.terminate()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, said


def test_the_script_of_the_readme_trains_detects_plots_and_evaluates(tmp_path):
    photos(tmp_path)
    (script,) = re.findall(r"```python\n(.*?)```", README, re.S)
    lines = [line for line in script.splitlines() if line.strip()]
    assert len(lines) <= 10
    assert all(call in script for call in ("tusk.train(", ".detect(", ".plot(", ".evaluate("))
    shorter = re.sub(r'"steps": \d+', '"steps": 2, "batch": 4', script).replace("count=100", "count=4")
    assert shorter != script
    done = subprocess.run([sys.executable, "-c", shorter], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine.safetensors").is_file()
    width, height = Image.open(tmp_path / "found.png").size
    assert width * 90 == height * 120
