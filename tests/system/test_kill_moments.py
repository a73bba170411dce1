"""Killed at any moment, a resumed training ends as an unbroken one, to the bit."""

import os
import subprocess
import sys
from pathlib import Path

from tests.system.test_training import SMALL, environment, pictures, weights  # noqa: F401 (fixtures)

FLAGS = [
    # Every step has keypoints of a type there, so that no moment of the prototypes is left out.
    "--preset", "folder/plain", *SMALL, "--training.steps", "20",
    "--training.checkpoint-every", "4", "--training.evaluate-every", "8",
    "--training.prototype-start", "k-means", "--training.warm-up", "0.2", "--training.prototype-restarts", "0.4",
    "--training.memory", "64", "--training.restart-dead-every", "3",
]  # fmt: skip


def test_at_twenty_two_named_moments_and_at_random_ones(pictures, environment, tmp_path):  # noqa: F811
    script = Path(__file__).with_name("kill_moments.py")
    environment = {**environment, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    done = subprocess.run(
        [sys.executable, script, pictures, tmp_path, *FLAGS], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    moments = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    assert len(moments) >= 21
    kills = int(dict(moments)["random"])
    assert kills >= 3  # how many fit into the run depends on the machine
    whole = tmp_path / "unbroken"
    for place, moment in moments:
        run = tmp_path / place
        assert weights(run) == weights(whole), moment
        assert (run / "results.csv").read_bytes() == (whole / "results.csv").read_bytes(), moment
        assert (run / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes(), moment
        assert not list(run.rglob("*.part")), moment
