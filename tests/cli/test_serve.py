"""`tusk serve` as a process: where it listens, what it refuses, how it ends."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from PIL import Image

from tests.detection.bright import blob
from tusk.cli.main import main


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_and_ends_well_on_a_signal(tmp_path, number):
    Image.fromarray(blob(64, 64, 20, 30, 3)).save(tmp_path / "a.png")
    process = subprocess.Popen(
        [sys.executable, "-m", "tusk", "serve", "mnist-hard", ".", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        with urllib.request.urlopen(f"{address}api/pictures", timeout=30) as answer:
            assert [one["name"] for one in json.load(answer)] == ["a.png"]
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0 and said.endswith("tusk serve: stopped.\n") and "Traceback" not in said
    assert not (tmp_path / "runs").exists()  # nothing was named, so nothing is written


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["mnist-hrd"], 3, "did you mean"),
        (["mnist-hard", "nowhere"], 3, "there is no such file"),
        (["mnist-hard", "--jobs", "0"], 2, "at least 1"),
        (["mnist-hard", "--token", "short"], 2, "too short"),
        (["mnist-hard", "--port", "99999"], 2, "no port"),
        (["mnist-hard", "--device", "cuda:77"], 2, "does not find it"),
        (["mnist-hard", "--prot", "1"], 2, "did you mean '--port'?"),
    ],
)
def test_a_fault_is_one_sentence(tmp_path, monkeypatch, capsys, args, code, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["serve", *args])
    error = capsys.readouterr().err
    assert stop.value.code == code and words in error and len(error.splitlines()) == 1
