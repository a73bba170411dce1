"""Two processes do what one does with the doubled batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.two_processes import KINDS, first_step, go_on
from tusk.errors import UsageError
from tusk.training.checkpoint import Checkpoints, trainer_tensors
from tusk.training.distributed import Ranks, backend_for, join_ranks
from tusk.training.trainer import Trainer

ROOT = Path(__file__).parents[2]


def processes(count, *words):
    """Run `two_processes.py` in so many."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    command = [sys.executable, *launcher, "-m", "tests.training.two_processes", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def of_several(tmp_path_factory):
    """What two processes made of one step of each kind, and four of one of them."""
    folder = tmp_path_factory.mktemp("several")
    processes(2, "steps", folder / "2", *KINDS)
    processes(4, "steps", folder / "4", "coupled")
    return folder


@pytest.mark.parametrize(("kind", "count"), [*((kind, 2) for kind in KINDS), ("coupled", 4)])
def test_gradients_equal_those_of_one_process(of_several, kind, count):
    two = load_file(of_several / str(count) / f"{kind}.safetensors")
    _, one = first_step(kind, None)
    assert two.keys() == one.keys() and ("patches" in one) == (kind == "patches")
    for name, value in one.items():
        torch.testing.assert_close(
            two[name], value, atol=1e-9, rtol=1e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_a_training_goes_on_with_another_number_of_processes(tmp_path):
    """Two steps of two processes, two of one, two of two again: the same as six of one."""
    processes(2, "go-on", tmp_path / "run", 2)
    go_on(tmp_path / "run", 2, Ranks())
    processes(2, "go-on", tmp_path / "run", 2)
    unbroken = go_on(tmp_path / "other", 6, Ranks())
    resumed = Trainer(unbroken.config)
    resumed.network.double()
    Checkpoints(tmp_path / "run", "config").restore(resumed)
    assert resumed.step == 6
    wanted, found = trainer_tensors(unbroken), trainer_tensors(resumed)
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        if name != "memory":  # the descriptors of the last batch, in the order of the processes
            torch.testing.assert_close(
                found[name], value, atol=1e-7, rtol=1e-5, msg=lambda text, name=name: name + text
            )


def test_nccl_only_for_tensors_on_gpus():
    assert backend_for(None) == backend_for(torch.device("cpu")) == "gloo"
    assert backend_for(torch.device("cuda", 1)) == "cpu:gloo,cuda:nccl"


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
