"""U-Nets in fewer digits, and computed once more for their gradients: the training stays what it is."""

import math

import pytest
import torch

from tests.training.test_trainer import configured, squares
from tusk.training.checkpoint import Checkpoints
from tusk.training.run import loading_workers
from tusk.training.trainer import Trainer, precision_of

KINDS = {
    "plain": {},
    "layers": {"model": {"decode": "layers", "background": "colour"}},
    "windows": {"model": {"decode": "layers", "layer_window": 16, "background": "colour"}},
}


def trained(kind, steps=20, **training):
    # Of raw features the loss is what they have shrunk to by then, which differs by tens of percent from seed to seed.
    losses = {"feature_equivariance": {"features": "unit", "weight": 1.0}}
    settings = {"learning_rate": 1e-3, "variance": 1.0, **training}
    trainer = Trainer(configured(**KINDS[kind], losses=losses, training=settings))
    batches = squares(4)
    return trainer, [trainer.train_step(next(batches), step / 40).losses for step in range(steps)]


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_is_float32_within_two_percent(kind):
    trainer, rough = trained(kind, precision="bfloat16")
    _, fine = trained(kind)
    assert all(math.isfinite(value) for losses in rough for value in losses.values())
    # The last five steps of twenty: a single batch of four pairs is a rough measure.
    last, wanted = (sum(sum(losses.values()) for losses in each[-5:]) for each in (rough, fine))
    assert last == pytest.approx(wanted, rel=0.02)
    assert rough[-1] != fine[-1]  # it is not float32
    assert all(parameter.dtype == torch.float32 for parameter in trainer.network.parameters())
    encoding = trainer.network.encode(next(squares(2)).float() / 255)
    for values in (encoding.score_map, encoding.feature_map, encoding.descriptors, encoding.keypoints.xy):
        assert values.dtype == torch.float32
    assert len(encoding.score_map.detach().flatten().unique()) > 1000  # many places, hardly any two of one score


def test_float16_scales_its_gradients_and_goes_on_from_a_checkpoint(tmp_path):
    trainer, losses = trained("plain", 4, precision="float16")
    assert all(math.isfinite(value) for each in losses for value in each.values())
    Checkpoints(tmp_path, "config").save(trainer, seconds=0.0)
    other = Trainer(trainer.config)
    Checkpoints(tmp_path, "config").restore(other)
    assert other.scaler.state_dict() == trainer.scaler.state_dict()
    batch = next(squares(4))
    assert other.train_step(batch, 0.5).losses == trainer.train_step(batch, 0.5).losses


@pytest.mark.parametrize("kind", KINDS)
def test_computed_once_more_the_gradients_are_the_same(kind):
    _, kept = trained(kind, 3)
    _, again = trained(kind, 3, recompute=True)
    assert [list(losses) for losses in kept] == [list(losses) for losses in again]
    for one, other in zip(kept, again, strict=True):
        assert one == pytest.approx(other, rel=1e-4)


def test_what_is_chosen():
    cpu = torch.device("cpu")
    assert precision_of("auto", cpu) == torch.float32 and precision_of("bfloat16", cpu) == torch.bfloat16
    assert loading_workers(None, cpu) == 0 and loading_workers(3, cpu) == 3
    assert 1 <= loading_workers(None, torch.device("cuda")) <= 8
