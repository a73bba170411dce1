"""Whole trainings as processes: killed, stopped, resumed, spread over two processes, out of disk, fed badly."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.pictures import save_squares
from tusk.cli import main as cli

SMALL = [
    "--model.keypoints", "3", "--model.types", "4", "--model.channels", "6", "--model.width", "4",
    "--model.levels", "2", "--model.window", "7", "--data.size", "32", "--training.batch", "8",
    "--training.steps", "60", "--training.checkpoint-every", "5", "--training.evaluate-every", "20",
]  # fmt: skip


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    save_squares(folder, 12)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    return {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": cache}


def start(args, environment, launcher=(), **options):
    command = [sys.executable, *launcher, "-m", "tusk", "train", *map(str, args)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def finish(args, environment, **options):
    process = start(args, environment, **options)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def weights(run):
    return {name: value.numpy().tobytes() for name, value in load_file(run / "model.safetensors").items()}


@pytest.fixture(scope="module")
def unbroken(pictures, environment, tmp_path_factory):
    run = tmp_path_factory.mktemp("unbroken") / "run"
    code, out, err = finish([pictures, *SMALL, "--out", run], environment)
    assert code == 0, err
    assert out.strip() == str(run / "model.safetensors")
    return run


def wait_for(condition, process, seconds=200):
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_saves_and_goes_on_later(pictures, environment, unbroken, tmp_path, number):
    run = tmp_path / "run"
    process = start([pictures, *SMALL, "--out", run, "--training.checkpoint-every", "1000"], environment)
    wait_for((run / "metrics.jsonl").exists, process)
    time.sleep(0.3)
    asked = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - asked < 30
    if process.returncode == 0:
        return  # it was done before the signal came
    assert process.returncode == 130, err
    assert "all is saved" in err.splitlines()[-1] and "Traceback" not in err
    code, _, err = finish(["--resume", run], environment)
    assert code == 0, err
    ours = weights(run)
    theirs = weights(unbroken)
    assert ours.keys() == theirs.keys() and all(ours[name] == theirs[name] for name in ours)


def test_two_processes_give_what_one_gives(pictures, environment, tmp_path):
    """Of a trained step; that all gradients agree, with every kind of loss, is for test_distributed.py to say."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    # With sizes, which peaks of an untrained map are the highest depends on the order of additions.
    flags = ["--preset", "folder/plain", *SMALL, "--training.steps", "20"]
    logged = []
    for name, first in (("two", launcher), ("one", ())):
        code, out, err = finish([pictures, *flags, "--out", tmp_path / name], environment, launcher=first)
        assert code == 0, err
        assert out.strip() == str(tmp_path / name / "model.safetensors")
        logged.append(json.loads((tmp_path / name / "metrics.jsonl").open().readline()))
    two, one = logged
    # The order of additions differs, and training amplifies that: the first logged losses must still agree.
    assert two["step"] == one["step"] == 10
    assert two["reconstruction"] == pytest.approx(one["reconstruction"], rel=2e-2)
    first, second = (load_file(tmp_path / name / "model.safetensors").keys() for name in ("one", "two"))
    assert first == second


def children(process):
    """Process ids of its children that run tusk."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == process.pid:
                found.append(int(entry.name))
        except OSError:
            continue  # it ended meanwhile
    return sorted(found)


def test_a_process_killed_twice_does_not_stop_the_run(pictures, environment, tmp_path):
    run = tmp_path / "run"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "3"]
    steps = ["--training.steps", "60"]
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, *launcher, "-m", "tusk", "train", pictures, *SMALL, *steps, "--out", run],
            env=environment, stdout=subprocess.PIPE, stderr=err, text=True,
        )  # fmt: skip
    manifest = run / "checkpoints" / "last.json"

    def saved():
        return json.loads(manifest.read_text())["step"] if manifest.exists() else 0

    killed = set()
    for _ in range(2):
        before = saved()
        wait_for(lambda before=before: saved() > before and len(set(children(process)) - killed) == 2, process)
        victim = max(set(children(process)) - killed)
        killed.update(children(process))  # torchrun ends the other one too
        os.kill(victim, signal.SIGKILL)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, (tmp_path / "err").read_text()[-3000:]
    assert out.strip().splitlines()[-1] == str(run / "model.safetensors")
    assert saved() == 60 and len(killed) == 4


@pytest.mark.usefixtures("unbroken")  # after which the decoded pictures are there
def test_no_room_on_the_disk_keeps_the_last_good_checkpoint(pictures, environment, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    plain = ["--preset", "folder/plain"]  # which makes no picture of a first look
    code, _, err = finish([pictures, *plain, *SMALL, "--out", tmp_path / "run"], environment, preexec_fn=limit)
    assert code == 1
    last = err.strip().splitlines()[-1]
    assert last.startswith("tusk: ") and "cannot be written" in last and "Traceback" not in err
    code, _, err = finish([pictures, *SMALL, "--out", tmp_path / "other"], environment, preexec_fn=limit)
    assert code == 1 and "File too large" in err
    assert err.strip().splitlines()[-1].startswith(f"tusk: {tmp_path / 'other'}{os.sep}")  # which file, by its name
    assert not list((tmp_path / "run").rglob("*.part"))


def test_bad_starts_are_one_sentence(pictures, unbroken, tmp_path, capfd):
    def sentence(args, code, *words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["train", *map(str, args)])
        out, err = capfd.readouterr()
        assert ended.value.code == code and out == "", err
        last = err.strip().splitlines()[-1]
        assert last.startswith("tusk: ") and "Traceback" not in err
        assert all(word in last for word in words), last

    sentence([pictures, *SMALL, "--out", unbroken], 2, str(unbroken), "not empty")
    sentence([tmp_path / "nothing", *SMALL], 3, "nothing")
    sentence(["--resume", tmp_path], 3, "no run in it")
    sentence(["--resume", unbroken, "--keypoints", "3"], 2, "--resume", "leave that out")
    sentence([pictures, "--keypoints", "0"], 2, "model.keypoints")
    sentence([pictures, *SMALL, "--model.keypoints", "300", "--out", tmp_path / "many"], 2, "300 keypoints do not fit")
    sentence(
        [pictures, *SMALL, "--data.size", "8", "--model.levels", "5", "--out", tmp_path / "small"],
        3,
        "this network needs at least",
    )
    assert not (tmp_path / "many").exists() and not (tmp_path / "small").exists()


def test_several_seeds_are_trained_and_resumed(pictures, environment, tmp_path):
    run = tmp_path / "run"
    flags = [*SMALL, "--training.steps", "20", "--training.evaluate-every", "10"]
    process = start([pictures, *flags, "--seeds", "3", "--seed", "7", "--out", run], environment)
    wait_for((run / "seed-8" / "checkpoints" / "last.json").exists, process)
    process.kill()
    process.communicate()
    first = (run / "seed-7" / "model.safetensors").stat().st_mtime_ns
    code, out, err = finish(["--resume", run], environment)
    assert code == 0, err
    assert out.strip() == str(run / "model.safetensors")
    assert (run / "seed-7" / "model.safetensors").stat().st_mtime_ns == first
    lines = (run / "seeds.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["seed", "7", "8", "9"]
    kept = next(line.split(",")[0] for line in lines if line.endswith("True"))
    assert weights(run) == weights(run / f"seed-{kept}")
    code, _, err = finish([pictures, *flags, "--seeds", "0"], environment)
    assert code == 2 and "--seeds" in err.strip().splitlines()[-1]


def test_a_dataset_of_one_image_trains(pictures, environment, tmp_path):
    one = next(Path(pictures).glob("*.png"))
    code, _, err = finish([one, *SMALL, "--training.steps", "3", "--out", tmp_path / "run"], environment)
    assert code == 0, err
