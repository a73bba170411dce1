"""The public API, frozen: a change here is a change for every user."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import tusk
from tests.pictures import save_squares
from tusk.config import Config
from tusk.errors import DataError, UsageError, UserError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, save_model
from tusk.weights import shipped_models

ROOT = Path(__file__).parents[1]
DETECT = "keypoints=None, min_score=None, min_gain=None"
SIGNATURES = {
    "train": (
        "source=None, *, preset=None, config=None, keypoints=None, types=None, thing_size=None, minutes=None, "
        "seed=None, frames=None, seeds=None, out=None, resume=None, tensorboard=False, device='auto', progress=True, "
        "command=None, **settings"
    ),
    "load": "name, device='auto'",
    "list_models": "",
    "datasets.open": "name, source=None, split='train', size=None, count=None, seed=0",
    "datasets.register": "name, open, *, summary='', origin='', made=False, scattered=False",
    "datasets.list": "",
    "Model.detect": f"self, images, {DETECT}, **detection",
    "Model.detect_iter": f"self, images, {DETECT}, **detection",
    "Model.detect_files": (
        f"self, source, out=None, {DETECT}, *, batch=8, masks=False, overlays=False, frames=None, share=(0, 1), "
        "resume=False, started=..., progress=True, **detection"
    ),
    "Model.evaluate": (
        "self, data, source=None, count=None, seed=0, *, training=None, split=None, keypoints=None, min_score=None, "
        "min_gain=None, batch=50, progress=True, started=..., **detection"
    ),
    "Model.encode": "self, image",
    "Model.report": "self, path=None, data=None, count=200, *, trust_source=False",
    "Model.save": "self, path",
    "Model.to": "self, device",
    "Detections.filter": "self, min_score=None, min_gain=None, types=None",
    "Detections.rows": "self",
    "Detections.to_pandas": "self",
    "Detections.to_coco": "self, image_id=1, types=None",
    "Detections.to_supervision": "self",
    "Detections.plot": "self, image",
}


def signature(function):
    words = []
    for parameter in inspect.signature(function).parameters.values():
        if callable(parameter.default) and parameter.default is not inspect.Parameter.empty:
            parameter = parameter.replace(default=...)
        words.append(str(parameter.replace(annotation=inspect.Parameter.empty)).replace("Ellipsis", "..."))
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
            words.insert(-1, "*")
    return ", ".join(words)


def public_methods(owner):
    return {name for name, value in vars(owner).items() if inspect.isfunction(value) and not name.startswith("_")}


def test_public_names():
    names = ["Detections", "Model", "__version__", "datasets", "list_models", "load", "train"]
    assert sorted(tusk.__all__) == names == dir(tusk)
    assert tusk.datasets.__all__ == ["list", "open", "register"]
    assert tusk.__version__ == "0.2.0"
    for owner in ("Model", "Detections"):
        frozen = {name.partition(".")[2] for name in SIGNATURES if name.startswith(f"{owner}.")}
        assert public_methods(getattr(tusk, owner)) == frozen
    properties = {name for name, value in vars(tusk.Model).items() if isinstance(value, property)}
    assert properties == {"config", "provenance", "names", "network", "device"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tusk.nothing  # noqa: B018 (it is the asking that fails)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    function = tusk
    for part in name.split("."):
        function = getattr(function, part)
    assert signature(function) == SIGNATURES[name]


def test_importing_tusk_stays_light():
    code = (
        "import tusk, sys; dir(tusk); heavy = {'torch', 'numpy', 'pydantic', 'rich', 'PIL'} & set(sys.modules); "
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_allocator_is_set_up_before_torch_is_imported():
    code = (
        "import sys, tusk.allocator as a; real = a.keep_memory\n"
        "a.keep_memory = lambda: print('torch' in sys.modules)\n"
        "import tusk; tusk.list_models(); tusk.load('mnist-hard')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    settings = {"keypoints": 2, "types": 3, "channels": 4, "width": 4, "levels": 2, "window": 7, "decode": "layers"}
    config = Config.model_validate({"model": settings, "data": {"size": 32}})
    path = tmp_path_factory.mktemp("run") / "model.safetensors"
    save_model(path, StoredModel(seeded_network(config.model, 0), config, {"command": "tusk train"}))
    return path


def test_load_knows_files_run_folders_and_names(saved):
    model = tusk.load(saved)
    assert model.network(torch.rand(1, 3, 32, 32), missing="empty").xy.shape == (1, 2, 2)
    assert tusk.load(saved.parent).config == model.config and model.path == saved
    assert "2 keypoints, 3 types" in repr(model) and str(saved) in repr(model)
    with pytest.raises(DataError, match=r"model 'mnist-hart': there is no such model or file; .*mnist-hard"):
        tusk.load("mnist-hart")
    with pytest.raises(DataError, match=r"nothing\.safetensors: there is no such model file"):
        tusk.load("nothing.safetensors")
    assert tusk.list_models() == sorted(shipped_models())


def test_devices_are_checked(saved):
    model = tusk.load(saved, device="auto")
    assert model.to("cpu") is model and str(model.device) == "cpu"
    for wrong in ("gpu", "cuda:x", "cuda:99"):
        with pytest.raises(UsageError, match=f"device '{wrong}'"):
            model.to(wrong)


def test_one_picture_many_and_a_stream_give_the_same(saved):
    model = tusk.load(saved)
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (30 + number % 3, 40, 3), dtype=np.uint8) for number in range(40)]
    many = model.detect(pictures, min_gain=-1000)
    assert isinstance(model.detect(pictures[0]), tusk.Detections) and len(many) == 40
    asked = []

    def giving():
        for number, picture in enumerate(pictures):
            asked.append(number)
            yield picture

    stream = model.detect_iter(giving(), min_gain=-1000)
    first = next(stream)
    assert len(asked) < 40, "it does not wait for the last picture"
    for found, other in zip([first, *stream], many, strict=True):
        assert found.rows() == other.rows() and len(found) == 2
        assert np.array_equal(found.mask_map, other.mask_map)


def test_results_of_files_carry_counts_and_limits(saved, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for name in ("a", "b"):
        Image.fromarray(rng.integers(0, 256, (32, 40, 3), dtype=np.uint8)).save(tmp_path / "photos" / f"{name}.png")
    model = tusk.load(saved)
    results = model.detect_files(tmp_path / "photos", tmp_path / "out", min_gain=-1000, progress=False)
    rows = list(results.counts())
    assert [(row["image"], row["total"]) for row in rows] == [("a.png", 2), ("b.png", 2)]
    assert all(row["total"] == row["type_0"] + row["type_1"] + row["type_2"] for row in rows)
    assert tuple(sum(row[f"type_{number}"] for row in rows) for number in range(3)) == results.totals.types
    assert results.totals.limits.at_limit == 2 and "2 of 2 pictures used all 2 keypoints" in results.remarks[0]
    found = model.detect(tmp_path / "photos" / "a.png", min_gain=-1000)
    assert found.at_limit and found.limit == 2 and not model.detect(tmp_path / "photos" / "a.png", 4).at_limit
    # A run that is complete says the same again.
    again = model.detect_files(tmp_path / "photos", tmp_path / "out", min_gain=-1000, progress=False)
    assert again.totals == results.totals and again.remarks == results.remarks


def test_detection_settings_are_checked(saved):
    with pytest.raises(UsageError, match="did you mean 'window'"):
        tusk.load(saved).detect(np.zeros((32, 32, 3), np.uint8), windo=9)
    with pytest.raises(UsageError, match="odd"):
        tusk.load(saved).detect(np.zeros((32, 32, 3), np.uint8), window=8)


def test_what_is_saved_is_loaded_again(saved, tmp_path):
    model = tusk.load(saved)
    again = tusk.load(model.save(tmp_path / "new" / "m.safetensors"))
    assert again.config == model.config and again.provenance == model.provenance
    with pytest.raises(UsageError, match=r"m\.safetensors"):
        model.save(tmp_path / "m.pt")


def test_training_from_python_refuses_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="absent: there is no such file"):
        tusk.train("absent", progress=False)
    with pytest.raises(UsageError, match="did you mean 'steps'"):
        tusk.train("digits", training={"step": 3})
    with pytest.raises(UsageError, match="steps: it is not a part of the settings"):
        tusk.train("digits", steps=3)
    with pytest.raises(UserError, match=r"a\.png: there is no such file"):
        tusk.train(["a.png", "b.png"], progress=False)
    for wrong, words in ({"": "empty text", 3: "it is a int"} | {(): "empty list", ("a", ""): "empty text"}).items():
        with pytest.raises(UsageError, match=f"source: {words}" if isinstance(wrong, int) else words):
            tusk.train(wrong)
    with pytest.raises(UsageError, match=r"data\.source: what to learn from was named already"):
        tusk.train("a.png", data={"source": "b.png"})
    with pytest.raises(UsageError, match="keypoints: it is given beside"):
        tusk.train("digits", keypoints=3, model={"keypoints": 4})
    with pytest.raises(UsageError, match="resume: it goes on with the run's own settings"):
        tusk.train("digits", resume="runs/train/digits")
    assert not list(tmp_path.iterdir())


def test_a_training_says_which_call_made_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    save_squares(tmp_path / "photos", 8)
    small = {"data": {"size": 32}, "training": {"steps": 2, "batch": 4}}
    files = [f"photos/{number}.png" for number in range(8)]
    several = tusk.train(files, keypoints=3, types=2, out="several", progress=False, **small)
    assert several.config.data.sources == tuple(str(tmp_path / file) for file in files)  # from any folder
    assert several.provenance["command"].startswith("tusk.train(['photos/")
    assert "photos/0.png and 7 more" in repr(several)
    results = several.detect_files(["photos/0.png", Path("photos/3.png")], "found", progress=False)
    assert results.files == 2 and results.totals.pictures == 2
    with pytest.raises(UsageError, match="frames: 'some' is not a choice"):
        several.detect_files("photos", frames="some")
    model = tusk.train("photos", keypoints=3, types=2, seed=5, **small)
    assert model.path == Path("runs/train/photos/model.safetensors")
    assert (model.config.model.keypoints, model.config.model.types, model.config.training.seed) == (3, 2, 5)
    assert model.provenance["command"].startswith("tusk.train('photos', ")
    assert "'keypoints': 3" in model.provenance["command"]


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_open_and_say_how_they_were_made(name):
    model = tusk.load(name)
    assert shipped_models()[name].stat().st_size <= 5_000_000
    assert model.provenance["command"].startswith("tusk train")
    assert {"seed", "minutes", "steps"} <= model.provenance.keys()
    size = model.config.data.size
    output = model.network(torch.rand(1, 3, size, size), missing="empty")
    assert output.label.shape == (1, model.config.model.keypoints)


@pytest.mark.slow
def test_examples_of_the_api_page_run(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.S)
    assert len(blocks) >= 12
    (tmp_path / "photos").mkdir()
    save_squares(tmp_path / "photos", 12)
    # A process of its own: the page registers a dataset.
    script = "\n".join([*blocks, "assert coco['annotations'][0]['image_id'] == 7"])
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "localisation" in done.stdout and "the paper" in done.stdout and "squares" in done.stdout
    assert Image.open(tmp_path / "found.png").size == (416, 416)
    assert (tmp_path / "runs/detect/mine/overlays/0.png.png").is_file()
    assert (tmp_path / "report.html").is_file() and (tmp_path / "models/mine.safetensors").is_file()
