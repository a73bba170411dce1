"""A whole run in this process: faults in the numbers, and what is kept of it."""

import json
import multiprocessing
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

import tusk.losses.kmeans
from tests.training.test_trainer import configured
from tusk.data.dataset import Truth
from tusk.detection.settings import settings_from
from tusk.errors import UserError
from tusk.geometry.warp import Warp
from tusk.model.storage import load_model
from tusk.presets import load_config, to_yaml
from tusk.report.build import training_pages
from tusk.report.sample import sample_of
from tusk.report.subject import Images
from tusk.training.display import ProgressDisplay
from tusk.training.distributed import Ranks
from tusk.training.logging import RunLog
from tusk.training.run import Run, sample_validation_images
from tusk.training.trainer import NotFiniteError, Trainer

CONFIG = configured(
    model={"descriptor_space": "standardised"},
    losses={"mutual_information": {"weight": 0.05}},
    training={"steps": 12, "checkpoint_every": 4, "evaluate_every": 6, "warm_up": 0.3, "memory": 64},
)


class Squares:
    """Twelve black pictures with three white squares each, and where those are."""

    name, class_names = "squares", ("square",)

    def __len__(self):
        return 12

    def image(self, index):
        image = np.zeros((32, 32, 3), np.uint8)
        for x, y in self.corners(index):
            image[y : y + 4, x : x + 4] = 255
        return image

    def corners(self, index):
        return np.random.default_rng(index).integers(2, 26, (3, 2))

    def truth(self, index):
        corners = self.corners(index).astype(float)
        boxes = np.concatenate([corners - 8, corners + 12], 1)
        return Truth(points=corners + 1.5, classes=np.zeros(3, np.int64), boxes=boxes)


def run_in(folder, config=CONFIG):
    return Run(
        config,
        folder,
        Squares(),
        sample_validation_images(Squares()),
        ProgressDisplay(Console(quiet=True)),
        "tusk train",
        Ranks(),
    )


def in_image(monkeypatch, wrong):
    images = Warp.images

    def spoilt(self, values):
        result = images(self, values)
        return result * torch.nan if wrong() else result

    monkeypatch.setattr(Warp, "images", spoilt)


def in_loss(monkeypatch, wrong):
    loss = tusk.losses.kmeans.kmeans_loss
    monkeypatch.setattr(
        tusk.losses.kmeans, "kmeans_loss", lambda values: loss(values) * (torch.nan if wrong() else 1.0)
    )


def in_gradient(monkeypatch, wrong):
    start = Trainer.__init__

    def hooked(self, *args, **kwargs):
        start(self, *args, **kwargs)
        self.body[0].register_hook(lambda gradient: gradient * torch.nan if wrong() else gradient)

    monkeypatch.setattr(Trainer, "__init__", hooked)


FAULTS = {"image": (in_image, "reconstruction"), "loss": (in_loss, "kmeans"), "gradient": (in_gradient, "gradient")}


@pytest.mark.parametrize("place", FAULTS)
def test_one_nan_is_rolled_back_and_never_saved(monkeypatch, tmp_path, place):
    calls = iter(range(1000))
    FAULTS[place][0](monkeypatch, lambda: next(calls) == 9)
    path = run_in(tmp_path).train(resume=False)
    manifest = json.loads((tmp_path / "checkpoints" / "last.json").read_text())
    assert (manifest["step"], manifest["rollbacks"], manifest["rate_factor"]) == (12, 1, 0.5)
    files = [path, *(tmp_path / "checkpoints").glob("*.safetensors")]
    tensors = [value for file in files for value in load_file(file).values()]
    assert tensors and all(bool(torch.isfinite(value.double()).all()) for value in tensors)


@pytest.mark.parametrize("place", FAULTS)
def test_a_nan_that_stays_stops_the_run_after_three_and_is_named(monkeypatch, tmp_path, place):
    inject, term = FAULTS[place]
    calls = iter(range(1000))
    inject(monkeypatch, lambda: next(calls) >= 9)
    with pytest.raises(NotFiniteError, match=f"training: {term}: it is not a finite number at step"):
        run_in(tmp_path).train(resume=False)
    last = json.loads((tmp_path / "checkpoints" / "last.json").read_text())
    saved = load_file(tmp_path / "checkpoints" / last["file"])
    assert all(bool(torch.isfinite(value.double()).all()) for value in saved.values())
    assert not (tmp_path / "model.safetensors").exists()


def test_every_rollback_halves_the_rate_again_and_undone_steps_leave_no_line(monkeypatch, tmp_path):
    training = {"steps": 22, "checkpoint_every": 100, "evaluate_every": 100}
    config = CONFIG.model_copy(update={"training": CONFIG.training.model_copy(update=training)})
    calls, rates = iter(range(1000)), []
    in_loss(monkeypatch, lambda: next(calls) in (11, 23))  # twice after step 10 was logged, back to step 0 each time
    step = Trainer.train_step

    def watched(self, *args):
        rates.append(self.rate_factor)
        return step(self, *args)

    monkeypatch.setattr(Trainer, "train_step", watched)
    run_in(tmp_path, config).train(resume=False)
    assert list(dict.fromkeys(rates)) == [1.0, 0.5, 0.25] and len(rates) == 12 + 12 + 22
    manifest = json.loads((tmp_path / "checkpoints" / "last.json").read_text())
    assert (manifest["rollbacks"], manifest["rate_factor"]) == (2, 0.25)
    logged = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert logged == [10, 20]


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, UserError])
def test_whatever_ends_a_run_its_log_is_closed_and_its_workers_end(monkeypatch, tmp_path, kind):
    logs = []
    start = RunLog.__init__

    def noted(self, *args, **kwargs):
        start(self, *args, **kwargs)
        logs.append(self)

    def broken(*_):
        assert multiprocessing.active_children(), "a worker loads images"
        raise kind("a", "b", "c")

    monkeypatch.setattr(RunLog, "__init__", noted)
    monkeypatch.setattr(Trainer, "train_step", broken)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    config = CONFIG.model_copy(update={"training": CONFIG.training.model_copy(update={"workers": 1})})
    with pytest.raises(kind) as caught:
        run_in(tmp_path, config).train(resume=False)
    assert caught.tb is not None, "the traceback is alive, and all that it refers to"
    assert len(logs) == 1 and logs[0]._metrics.closed
    assert not multiprocessing.active_children()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


@pytest.mark.parametrize(("selection", "score", "step"), [("best", 0.9, 10), ("last", 0.4, 12)])
def test_the_model_is_the_chosen_one_and_every_nth_checkpoint_is_kept(monkeypatch, tmp_path, selection, score, step):
    scores = iter([0.7, 0.9, 0.4])
    real = tusk.training.run.validate
    monkeypatch.setattr(
        tusk.training.run,
        "validate",
        lambda *args: replace(real(*args), agreement=next(scores), explained_variance=1.0),
    )
    training = {"evaluate_every": 5, "keep_every": 4, "selection": selection}
    path = run_in(tmp_path, CONFIG.model_copy(update={"training": CONFIG.training.model_copy(update=training)})).train(
        resume=False
    )
    model = load_model(path)
    assert (model.provenance["score"], model.provenance["steps"]) == (score, step)
    folder = tmp_path / "checkpoints"
    kept = sorted(int(file.stem.removeprefix("step-")) for file in folder.glob("*.safetensors"))
    assert kept == [4, 8, 10, 12]
    chosen = load_file(folder / f"step-{step:07}.safetensors")
    for name, value in model.network.state_dict().items():
        assert torch.equal(value, chosen[f"network/{name}"]), name


@pytest.mark.parametrize(("least", "stored"), [(1.23456, 1.235), (-np.inf, None)])
def test_the_model_knows_the_least_gain_of_an_object(monkeypatch, tmp_path, least, stored):
    asked = []
    monkeypatch.setattr(tusk.training.run, "least_gain", lambda *args: asked.append(args[1:]) or least)
    model = load_model(run_in(tmp_path).train(resume=False))
    assert model.provenance["least_gain"] == stored and model.least_gain == (stored or 0.0)
    assert len(asked) == 1 and len(asked[0][0]) >= 1 and asked[0][1] == settings_from(CONFIG)


def test_validation_before_there_are_types_does_not_count(tmp_path):
    config = configured(training={"steps": 6, "evaluate_every": 2, "warm_up": 1.0})
    path = run_in(tmp_path, config).train(resume=False)
    assert load_model(path).provenance["score"] is None
    assert not (tmp_path / "checkpoints" / "best.json").exists()


def test_a_run_of_an_older_version_goes_on(tmp_path):
    """Its config.yaml lacks a setting that came later."""
    text = "\n".join(line for line in to_yaml(CONFIG).splitlines() if "keep_every" not in line)
    (tmp_path / "config.yaml").write_text(text)
    first = run_in(tmp_path, CONFIG)
    first.train(resume=False)
    assert load_config(None, tmp_path / "config.yaml") == CONFIG
    assert run_in(tmp_path, CONFIG).train(resume=True) == tmp_path / "model.safetensors"


def test_a_page_that_fails_is_one_warning_and_changes_nothing(tmp_path):
    """Weights, logs and checkpoints are those of a run without pages."""
    moments = []

    def write(_, moment):
        moments.append((moment.step, moment.finished, moment.validation is None))
        if len(moments) == 2:
            raise OSError(28, "No space left on device")

    trained = []
    for name, page in (("plain", None), ("paged", write)):
        (tmp_path / name).mkdir()
        with (tmp_path / f"{name}.txt").open("w") as file:
            run = replace(run_in(tmp_path / name), write_page=page, show=ProgressDisplay(Console(file=file, width=300)))
            trained.append(load_file(run.train(resume=False)))
    assert moments == [(6, False, False), (12, False, False)]
    warnings = [line for line in (tmp_path / "paged.txt").read_text().splitlines() if "could not be written" in line]
    assert len(warnings) == 1 and "No space left" in warnings[0] and "tusk report" in warnings[0]
    assert all(torch.equal(value, trained[1][name]) for name, value in trained[0].items())
    for name in ("metrics.jsonl", "results.csv"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "paged" / name).read_bytes()


def test_a_run_with_real_pages_has_the_weights_of_one_without(tmp_path):
    plain, paged = tmp_path / "plain", tmp_path / "paged"
    plain.mkdir(), paged.mkdir()
    images = Images(sample_of(Squares(), 12), "of squares")
    pages = training_pages(paged / "report.html", CONFIG, images, "tusk train squares")
    first = load_file(run_in(plain).train(resume=False))
    second = load_file(replace(run_in(paged), write_page=pages).train(resume=False))
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    text = (paged / "report.html").read_text()
    assert "tusk train squares" in text and "not finished" not in text and 'id="curves"' in text
