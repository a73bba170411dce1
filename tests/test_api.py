"""The public names, frozen: a change here is a change for every user."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tusk
from tusk.config import Config
from tusk.errors import DataError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, save_model
from tusk.weights import shipped_models

ROOT = Path(__file__).parents[1]


def test_public_names():
    assert sorted(tusk.__all__) == ["Detections", "__version__", "load"]
    assert tusk.Detections.__module__ == "tusk.detection.detections"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tusk.nothing  # noqa: B018 (it is the asking that fails)


def test_importing_tusk_does_not_import_torch():
    code = "import tusk, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_load_opens_a_saved_model(tmp_path):
    config = Config.model_validate({"model": {"keypoints": 2, "types": 3, "channels": 4, "width": 4, "levels": 2}})
    save_model(tmp_path / "m.safetensors", StoredModel(seeded_network(config.model, 0), config))
    model = tusk.load(str(tmp_path / "m.safetensors"))
    assert model.network(torch.rand(1, 3, 32, 32), missing="empty").xy.shape == (1, 2, 2)


def test_load_knows_run_folders_and_says_which_models_there_are(tmp_path):
    config = Config.model_validate({"model": {"keypoints": 2, "types": 3, "channels": 4, "width": 4, "levels": 2}})
    save_model(tmp_path / "model.safetensors", StoredModel(seeded_network(config.model, 0), config))
    assert tusk.load(tmp_path).config == config
    with pytest.raises(DataError, match=r"model 'mnist-hart': there is no such model or file; .*mnist-hard"):
        tusk.load("mnist-hart")
    with pytest.raises(DataError, match=r"nothing\.safetensors: there is no such model file"):
        tusk.load("nothing.safetensors")


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_open_and_say_how_they_were_made(name):
    model = tusk.load(name)
    assert shipped_models()[name].stat().st_size <= 5_000_000
    assert model.provenance["command"].startswith("tusk train")
    assert {"seed", "minutes", "steps"} <= model.provenance.keys()
    size = model.config.data.size
    output = model.network(torch.rand(1, 3, size, size), missing="empty")
    assert output.label.shape == (1, model.config.model.keypoints)


def test_python_in_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_commands_in_the_readme_exist():
    text = (ROOT / "README.md").read_text() + (ROOT / "docs" / "data.md").read_text()
    from tusk.cli.data import VERBS
    from tusk.cli.main import _VERBS

    commands = re.findall(r"^tusk (\S+)(?: (\S+))?", text, re.M)
    assert len(commands) >= 5
    for verb, second in commands:
        assert verb in _VERBS
        assert verb != "data" or second in VERBS
    makefile = (ROOT / "Makefile").read_text()
    assert "\ndemo:" in makefile and "\ntest:" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text()
