"""The loop: it lowers the loss, is deterministic, and a batch in parts is the batch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tusk.config import Config
from tusk.errors import UsageError
from tusk.training.trainer import NotFiniteError, Trainer, learning_rate

BASE = {
    "data": {"size": 32},
    "model": {"keypoints": 3, "types": 4, "channels": 6, "width": 4, "levels": 2, "window": 7},
    "training": {"batch": 8, "steps": 20},
}


def configured(**parts):
    from tusk.presets import merge

    return Config.model_validate(merge(BASE, parts))


def squares(count=4, seed=0):
    """Black images with three white squares, without end."""
    rng = np.random.default_rng(seed)
    while True:
        images = np.zeros((count, 3, 32, 32), np.uint8)
        for image in images:
            for x, y in rng.integers(2, 26, (3, 2)):
                image[:, y : y + 4, x : x + 4] = 255
        yield torch.tensor(images)


def train(config, steps):
    trainer, images = Trainer(config), squares()
    reports = [trainer.train_step(next(images), step / config.training.steps) for step in range(steps)]
    return trainer, reports


def test_the_loss_falls():
    config = configured(training={"learning_rate": 0.01, "variance": 1.0})
    _, reports = train(config, 60)
    first = np.mean([report.losses["reconstruction"] for report in reports[:5]])
    last = np.mean([report.losses["reconstruction"] for report in reports[-5:]])
    assert last < 0.7 * first


def test_same_seed_same_weights_to_the_bit():
    config = configured(losses={"mutual_information": {"weight": 0.1}})
    first, _ = train(config, 4)
    again, _ = train(config, 4)
    other, _ = train(configured(training={"seed": 1}), 4)
    for a, b in zip(first.network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.network.encoder.unet.last.weight, other.network.encoder.unet.last.weight)


@pytest.mark.parametrize("features", ["raw", "unit"])
def test_a_batch_in_parts_gives_the_same_step(features):
    def gradients(micro_batch):
        config = configured(
            training={"micro_batch": micro_batch}, losses={"feature_equivariance": {"features": features}}
        )
        trainer, reports = train(config, 1)
        body = [*trainer.network.encoder.parameters(), *trainer.network.decoder.parameters()]
        return torch.cat([parameter.grad.flatten() for parameter in body]), reports[0].losses

    whole, whole_losses = gradients(None)
    parts, parts_losses = gradients(2)
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-4)
    assert parts_losses == pytest.approx(whole_losses, rel=1e-4, abs=1e-6)


def test_the_networks_step_leaves_prototypes_alone_and_theirs_leaves_the_network():
    config = configured(training={"prototype_steps": 0})
    trainer = Trainer(config)
    before = trainer.network.prototypes.weight.detach().clone()
    trainer.train_step(next(squares()), 0.0)
    assert torch.equal(trainer.network.prototypes.weight, before)

    trainer = Trainer(configured())
    trainer.train_step(next(squares()), 0.0)
    moved = trainer.network.prototypes.weight.detach()
    assert not torch.equal(moved, before)


@pytest.mark.parametrize(("kind", "quantisation"), [("sliced-wasserstein", 0.0), ("k-means", 0.0), ("k-means", 1.0)])
@pytest.mark.parametrize("alternate", [True, False])
def test_every_way_of_training_prototypes_moves_them(kind, quantisation, alternate):
    losses = {"prototypes": {"kind": kind}, "quantisation": {"weight": quantisation}}
    config = configured(training={"alternate": alternate}, losses=losses)
    trainer, images = Trainer(config), squares()
    before = trainer.network.prototypes.weight.detach().clone()
    for step in range(3):
        report = trainer.train_step(next(images), step / 20)
    assert (report.losses.get("quantisation", 0.0) > 0) == (quantisation > 0)
    assert (trainer.network.prototypes.weight - before).abs().max() > 1e-3


def test_prototypes_wait_for_the_warm_up_and_start_by_kmeans():
    config = configured(
        model={"descriptor_space": "standardised"},
        training={"warm_up": 0.3, "prototype_start": "k-means", "memory": 200, "prototype_restarts": (0.6,)},
    )
    trainer, images = Trainer(config), squares()
    start = trainer.network.prototypes.weight.detach().clone()
    for step in range(6):
        report = trainer.train_step(next(images), step / 20)
    assert torch.equal(trainer.network.prototypes.weight, start) and "prototypes" not in report.losses
    trainer.train_step(next(images), 0.3)
    assert not torch.equal(trainer.network.prototypes.weight, start)
    calls = []
    real = trainer.memory.latest
    trainer.memory.latest = lambda count=None: calls.append(count) or real(count)
    trainer.train_step(next(images), 0.59)
    assert None not in calls
    trainer.train_step(next(images), 0.6)
    assert calls.count(None) == 1
    trainer.train_step(next(images), 0.61)
    assert calls.count(None) == 1


def test_what_is_not_a_number_is_refused_by_name_and_changes_nothing():
    trainer = Trainer(configured())
    with torch.no_grad():
        trainer.network.decoder.unet.last.bias[0] = float("nan")
    before = [parameter.detach().clone() for parameter in trainer.network.encoder.parameters()]
    with pytest.raises(NotFiniteError, match="training: reconstruction: it is not a finite number at step 0"):
        trainer.train_step(next(squares()), 0.0)
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.network.encoder.parameters(), strict=True))

    trainer = Trainer(configured())
    trainer.body[3].register_hook(lambda gradient: gradient * float("inf"))
    before = [parameter.detach().clone() for parameter in trainer.body]
    with pytest.raises(NotFiniteError, match="training: gradient"):
        trainer.train_step(next(squares()), 0.0)
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.body, strict=True))


def test_one_cycle():
    training = configured(training={"learning_rate": 0.003, "learning_rate_shape": "one-cycle"}).training
    assert learning_rate(training, 0.0) == pytest.approx(0.003 / 25)
    assert learning_rate(training, 0.3) == pytest.approx(0.003)
    assert learning_rate(training, 1.0) < 1e-6
    assert learning_rate(configured().training, 0.7) == 1e-3


def test_a_compiled_step_is_the_same_step():
    """In a process of its own: compiling leaves much behind."""
    script = """
import torch
from tests.training.test_trainer import configured, train
plain, _ = train(configured(model={"levels": 1}), 1)
compiled, _ = train(configured(model={"levels": 1}, training={"compile": True}), 1)
assert compiled.network.state_dict().keys() == plain.network.state_dict().keys()
for ours, theirs in zip(compiled.body, plain.body, strict=True):
    # Biases before a norm have a gradient of 0: what is there is rounding.
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-4, rtol=1e-3)
"""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}  # or it starts a process for each core
    done = subprocess.run([sys.executable, "-c", script], cwd=root, env=environment, capture_output=True, text=True)
    # Some environments cannot compile; then it must say so in one sentence.
    refused = "tusk.errors.UsageError: training.compile: torch could not compile the network" in done.stderr
    assert done.returncode == 0 or refused, done.stderr


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UsageError, match=r"training\.compile: no C\+\+ compiler was found"):
        Trainer(configured(training={"compile": True}))


def test_the_decoder_starts_at_the_mean_colour():
    trainer = Trainer(configured(training={"start_at_mean": True, "learning_rate": 1e-9}))
    images = next(squares())
    images[:, 1] //= 2
    trainer.train_step(images, 0.0)
    bias = trainer.network.decoder.unet.last.bias.detach()
    mean = images.float().div(255).mean((0, 2, 3))
    torch.testing.assert_close(torch.sigmoid(bias), mean, atol=1e-4, rtol=0)


def test_reconstructing_the_first_view_alone_leaves_the_second_out():
    both, first = (
        train(configured(losses={"reconstruction": {"views": views}}), 1)[1][0] for views in ("both", "first")
    )
    assert first.losses["reconstruction"] != both.losses["reconstruction"]
    for name in ("kmeans", "score_equivariance", "feature_equivariance"):
        assert first.losses[name] == both.losses[name]


def test_a_relative_error_is_the_same_for_pale_images():
    def first_error(divisor, relative):
        config = configured(losses={"reconstruction": {"relative": relative}}, training={"start_at_mean": True})
        trainer = Trainer(config)
        with torch.no_grad():
            trainer.network.decoder.unet.last.weight.zero_()  # it gives the mean colour
        return trainer.train_step(next(squares()) // divisor, 0.0).losses["reconstruction"]

    assert first_error(1, True) == pytest.approx(1.0, rel=0.05)
    assert first_error(5, True) == pytest.approx(1.0, rel=0.05)
    assert first_error(5, False) < 0.1 * first_error(1, False)


def test_while_pseudo_labels_are_in_use_the_prototypes_are_the_means_of_the_clusters():
    config = configured(
        losses={"pseudo_labels": {"weight": [[0.5, 0.1], [0.6, 0.0]]}},
        training={"prototype_start": "k-means", "warm_up": 0.1, "memory": 100},
    )
    trainer, _ = train(config, 6)
    assert trainer.memory.groups is not None
    torch.testing.assert_close(
        trainer.network.prototypes.unit().detach(), trainer.memory.means(trainer.network.prototypes.unit().detach())
    )
    images = squares()
    for step in range(12, 14):  # not in use any more: prototypes follow their own loss again
        report = trainer.train_step(next(images), step / 20)
    assert report.losses["prototypes"] > 0 and report.losses["pseudo_labels"] == 0


def test_no_type_is_restarted_while_pseudo_labels_are_in_use(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "tusk.training.prototypes.restart_dead_prototypes", lambda prototypes, *_: asked.append(1) or prototypes.flip(0)
    )
    config = configured(
        losses={"pseudo_labels": {"weight": [[0.5, 0.1], [0.6, 0.0]]}},
        training={"prototype_start": "k-means", "warm_up": 0.1, "memory": 100, "restart_dead_every": 1},
    )
    trainer, _ = train(config, 10)
    assert trainer.memory.groups is not None and not asked
    trainer.train_step(next(squares()), 0.65)
    assert trainer.memory.groups is None and asked


def test_images_that_are_all_background_leave_the_prototypes_as_they_are():
    layers = {"decode": "layers", "layer_window": 16, "background": "colour"}
    trainer = Trainer(configured(model=layers, training={"start_at_mean": True}))
    before = trainer.network.prototypes.weight.detach().clone()
    trainer.network.decoder.background.logit.data.zero_()
    for step in range(2):
        trainer.train_step(torch.full((4, 3, 32, 32), 128, dtype=torch.uint8), step / 20)
    assert trainer.network.prototypes.weight.isfinite().all()
    assert torch.equal(trainer.network.prototypes.weight, before) or len(trainer.memory)
