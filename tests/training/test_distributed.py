"""Two processes do what one does with the doubled batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.two_processes import KINDS, first_step
from tusk.errors import UsageError
from tusk.training.distributed import Ranks, join_ranks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    """What two processes made of one step of each kind."""
    folder = tmp_path_factory.mktemp("two")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *launcher, "-m", "tests.training.two_processes", folder]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_those_of_one_process(of_two, kind):
    two = load_file(of_two / f"{kind}.safetensors")
    _, one = first_step(kind, None)
    assert two.keys() == one.keys() and ("patches" in one) == (kind == "patches")
    for name, value in one.items():
        torch.testing.assert_close(
            two[name], value, atol=1e-9, rtol=1e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_one_process_alone():
    ranks = Ranks()
    value = torch.rand(3, requires_grad=True)
    assert ranks.is_main and ranks.part(10) == slice(0, 10)
    assert ranks.mean(value) is value and ranks.gather(value) is value
    assert ranks.broadcast(lambda: 5) == 5 and ranks.any(True) and not ranks.any(False)


def test_half_of_torchruns_variables_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(UsageError, match="WORLD_SIZE"):
        join_ranks()
