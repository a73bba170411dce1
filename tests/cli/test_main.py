"""The command line as a user meets it: real processes, exit codes, one sentence for a fault."""

import os
import resource
import subprocess
import sys

import pytest
import torch
import yaml

from tests.golden.read import read_golden
from tusk.model.storage import load_model


def tusk(*args, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tusk", *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        timeout=120,
    )


def assert_sentence(done, code, *words):
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("tusk: "), done.stderr
    for word in words:
        assert word in lines[0]


def test_help_is_quick_and_names_every_verb():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = tusk("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    for verb in ("demo", "report", "data", "config", "presets", "import-authors", "doctor"):
        assert f"\n  {verb} " in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_importing_tusk_does_not_import_torch():
    code = "import sys, tusk, tusk.cli; assert not {'torch', 'numpy', 'sklearn'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_version():
    assert tusk("--version").stdout == "tusk 0.2.0\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["dmeo"], ["'dmeo'", "did you mean 'demo'?"]),
        (["config", "--preset", "mnist-hrd"], ["mnist-hrd", "did you mean 'mnist-hard'?"]),
        (["config", "--preset", "mnist-hard/slow"], ["mnist-hard/slow", "fast, paper"]),
        (["config", "--model.keypoint", "4"], ["model.keypoint", "did you mean 'keypoints'?"]),
        (["config", "--model.keypoints", "0"], ["model.keypoints", "greater than or equal to 1"]),
        (["config", "--model.keypoints=0"], ["model.keypoints", "greater than or equal to 1"]),
        (["config", "--model.decode", "layer"], ["model.decode", "did you mean 'layers'?"]),
        (["config", "--model.window", "8"], ["window must be odd"]),
        (["config", "--preset"], ["--preset", "expected one argument"]),
        (["config", "--config", "absent.yaml"], ["absent.yaml", "no such file"]),
        (["demo", "--minutes", "none"], ["--minutes", "tusk demo --help"]),
        (["demo", "--minutes", "0"], ["--minutes", "above 0"]),
        (["demo", "--hours", "1"], ["--hours"]),
        (["data", "mak"], ["'data mak'", "did you mean 'make'?"]),
        (["import-authors", "a.pth", "b.pt"], ["b.pt", "b.safetensors"]),
    ],
)
def test_faults_of_usage_are_one_sentence_and_exit_2(args, words):
    assert_sentence(tusk(*args), 2, *words)


def test_config_shows_preset_then_file_then_flags(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("model: {keypoints: 5, types: 7}\n")
    done = tusk("config", "--preset", "mnist-hard/paper", "--config", file, "--model.types", "8", "--data.grey")
    values = yaml.safe_load(done.stdout)
    assert (values["model"]["keypoints"], values["model"]["types"], values["model"]["window"]) == (5, 8, 13)
    assert values["data"]["grey"] is True
    file.write_text("model: {keypints: 5}\n")
    assert_sentence(tusk("config", "--config", file), 2, "mine.yaml", "did you mean 'keypoints'?")


def test_schedules_can_be_given_as_flags():
    done = tusk("config", "--losses.kmeans.weight", "0.1", "0.0", "0.5", "1.0")
    assert yaml.safe_load(done.stdout)["losses"]["kmeans"]["weight"] == [[0.1, 0.0], [0.5, 1.0]]
    assert yaml.safe_load(tusk("config", "--model.layer-window", "None").stdout)["model"]["layer_window"] is None


def test_flags_of_renamed_settings_still_work():
    done = tusk("config", "--training.revive-every=7", "--losses.contrast.weight", "0.5")
    values = yaml.safe_load(done.stdout)
    assert values["training"]["restart_dead_every"] == 7 and values["losses"]["info_nce"]["weight"] == 0.5
    assert "'training.revive_every' is now called 'training.restart_dead_every'" in done.stderr


def test_settings_that_are_only_right_together_can_be_given_together():
    done = tusk("config", "--training.window", "0.3", "13", "0.5", "9", "--model.window", "9")
    values = yaml.safe_load(done.stdout)
    assert (values["training"]["window"], values["model"]["window"]) == ([[0.3, 13.0], [0.5, 9.0]], 9)
    assert_sentence(tusk("config", "--training.window", "0.3", "13", "0.5", "9"), 2, "must end at model.window, 13")


def test_import_authors_writes_a_model_that_opens(tmp_path):
    golden = read_golden("network_sum")
    state = {key.removeprefix("state/"): torch.tensor(value) for key, value in golden.items() if "state/" in key}
    torch.save({"network": state}, tmp_path / "released.pth")
    done = tusk("import-authors", tmp_path / "released.pth", tmp_path / "out" / "model.safetensors")
    assert done.returncode == 0, done.stderr
    model = load_model(tmp_path / "out" / "model.safetensors")
    with torch.no_grad():
        output = model.network(torch.tensor(golden["image"]))
    torch.testing.assert_close(output.xy, torch.tensor(golden["keypoints_xyscore"][:1, :, :2]), atol=1e-3, rtol=0)
    assert model.config.data.dataset == "mnist-hard" and model.config.model.type_scale == 20

    del state["encoder.heatmap_header.3.bias"]
    torch.save(state, tmp_path / "short.pth")
    done = tusk("import-authors", tmp_path / "short.pth", tmp_path / "short.safetensors")
    assert_sentence(done, 3, "short.pth", "encoder.heatmap_header.3.bias", "missing")
    assert not (tmp_path / "short.safetensors").exists()
    (tmp_path / "junk.pth").write_bytes(b"junk")
    assert_sentence(tusk("import-authors", tmp_path / "junk.pth", tmp_path / "x.safetensors"), 3, "junk.pth")
    assert_sentence(tusk("import-authors", tmp_path / "none.pth", tmp_path / "x.safetensors"), 3, "no such file")


@pytest.mark.slow
def test_a_full_folder_is_not_written_over(tmp_path):
    (tmp_path / "kept.txt").write_text("mine")
    assert_sentence(tusk("demo", "--out", tmp_path), 2, str(tmp_path), "not empty")
    (tmp_path / "file").write_text("mine")
    assert_sentence(tusk("demo", "--out", tmp_path / "file" / "below"), 2, "cannot be made")


def test_a_reader_that_leaves_is_no_fault():
    done = subprocess.run(f"'{sys.executable}' -m tusk config | head -1", shell=True, capture_output=True, text=True)
    assert done.stdout == "data:\n" and done.stderr == ""
