"""Which device is meant, and what is said of one that is not there."""

import pytest
import torch

import tusk.device
from tusk.cli.main import main
from tusk.device import choose_device, device_names, device_words
from tusk.errors import UsageError


@pytest.fixture
def machine(monkeypatch):
    """A function that gives this machine GPUs, and makes this process one of several."""

    def make(*devices, local_rank=None, local_world=1, world=None):
        monkeypatch.setattr(tusk.device, "device_names", lambda: [*devices, "cpu"])
        if local_rank is not None:
            for name, value in (
                ("LOCAL_RANK", local_rank),
                ("LOCAL_WORLD_SIZE", local_world),
                ("WORLD_SIZE", world or local_world),
            ):
                monkeypatch.setenv(name, str(value))

    return make


@pytest.mark.parametrize(
    ("devices", "asked", "chosen"),
    [
        ((), "auto", "cpu"),
        ((), "cpu", "cpu"),
        (("cuda:0", "cuda:1"), "auto", "cuda:0"),
        (("cuda:0", "cuda:1"), "cuda", "cuda:0"),
        (("cuda:0", "cuda:1"), "cuda:1", "cuda:1"),
        (("cuda:0",), "cpu", "cpu"),
        (("mps",), "auto", "mps"),
        (("mps",), "mps", "mps"),
    ],
)
def test_the_device_that_is_meant(machine, devices, asked, chosen):
    machine(*devices)
    assert choose_device(asked) == torch.device(chosen)


@pytest.mark.parametrize(
    ("devices", "asked", "named"),
    [
        ((), "cuda", "use cpu"),
        ((), "mps", "use cpu"),
        (("cuda:0", "cuda:1"), "cuda:2", "use cuda:0, cuda:1 or cpu"),
        (("cuda:0",), "mps", "use cuda:0 or cpu"),
        (("cuda:0",), "tpu", "use auto, cuda:0 or cpu"),
        (("cuda:0",), "cuda:x", "use auto, cuda:0 or cpu"),
        (("cuda:0",), "cpu:1", "use auto, cuda:0 or cpu"),
        ((), "", "use auto, cpu"),
    ],
)
def test_one_that_is_not_there_is_refused_with_those_that_are(machine, devices, asked, named):
    machine(*devices)
    with pytest.raises(UsageError, match=named) as refused:
        choose_device(asked)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("asked", ["auto", "cuda"])
def test_each_process_of_a_machine_has_a_gpu_of_its_own(machine, asked):
    machine("cuda:0", "cuda:1", local_rank=1, local_world=2, world=4)
    assert choose_device(asked) == torch.device("cuda:1")


def test_processes_that_cannot_have_one_each_are_refused(machine):
    machine("cuda:0", local_rank=1, local_world=2)
    with pytest.raises(UsageError, match="--nproc-per-node 1"):
        choose_device("auto")
    with pytest.raises(UsageError, match="all 2 processes"):
        choose_device("cuda:0")
    machine("mps", local_rank=0, local_world=2)
    assert choose_device("auto") == torch.device("cpu")
    with pytest.raises(UsageError, match="together"):
        choose_device("mps")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("verb", [["train", "photos"], ["detect", "mnist-hard", "photos"], ["report", "mnist-hard"]])
def test_every_verb_says_so_in_one_sentence(tmp_path, monkeypatch, capsys, verb):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"")
    with pytest.raises(SystemExit) as stop:
        main([*verb, "--device", "cuda"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said == "tusk: device 'cuda': torch does not find it on this machine; use cpu.\n"
    assert not (tmp_path / "runs").exists()


def test_this_machine():
    assert device_names()[-1] == "cpu" and "CPU" in device_words(torch.device("cpu"))
