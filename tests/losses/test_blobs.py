"""Scores and sizes that follow the blobs of what is not background."""

import math
from types import SimpleNamespace

import pytest
import torch
from pydantic import ValidationError

from tests.model.test_unet import SIZED
from tests.pictures import disc_mask
from tusk.config import Config
from tusk.losses.blobs import Blobs, blob_target, focal_loss

DISCS = ((9.0, 10.0, 5.0), (24.0, 20.0, 3.0))


def test_focal_loss_as_by_hand():
    draw = torch.Generator().manual_seed(0)
    score, target = torch.rand(2, 1, 5, 6, generator=draw), torch.rand(2, 1, 5, 6, generator=draw) * 0.98
    target[0, 0, 2, 3] = target[1, 0, 4, 0] = target[1, 0, 0, 0] = 1.0
    score[0, 0, 0, 0], score[0, 0, 2, 3] = 0.0, 1.0  # clamped, so that there is no logarithm of 0
    total = 0.0
    for p, t in zip(score.flatten().tolist(), target.flatten().tolist(), strict=True):
        p = min(max(p, 1e-4), 1 - 1e-4)
        total -= (1 - p) ** 2 * math.log(p) if t > 0.99 else (1 - t) ** 4 * p**2 * math.log(1 - p)
    assert float(focal_loss(score, target, torch.tensor(3.0))) == pytest.approx(total / 3, rel=1e-4)


def test_an_image_without_things_wants_low_scores():
    empty = torch.zeros(1, 1, 8, 8)
    low, high = (float(focal_loss(torch.full_like(empty, score), empty, torch.tensor(1.0))) for score in (0.01, 0.5))
    assert 0 <= low < 0.01 < high


def test_the_target_is_one_at_a_blob_and_falls_off_with_its_size():
    xy, radius = torch.tensor([[[4.0, 6.0], [12.0, 6.0], [0.0, 0.0]]]), torch.tensor([[2.0, 6.0, 5.0]])
    target = blob_target(xy, radius, torch.tensor([[True, True, False]]), (12, 20))
    assert target.shape == (1, 1, 12, 20)
    for row in range(12):
        for column in range(20):
            wanted = max(
                math.exp(-(math.dist((column, row), place) ** 2) / (2 * max(0.35 * size, 0.7) ** 2))
                for place, size in (((4, 6), 2.0), ((12, 6), 6.0))
            )
            assert float(target[0, 0, row, column]) == pytest.approx(wanted, abs=1e-6)


def loss_of(score_map, radius_map, residual, **settings):
    """The loss alone, of a step that has nothing else."""
    config = Config.model_validate({"model": SIZED, "losses": {"blobs": {"weight": 1.0, **settings}}})
    network = SimpleNamespace(config=config.model)
    encoding = SimpleNamespace(score_map=score_map, radius_map=radius_map)
    ranks = SimpleNamespace(all_gather_with_grad=lambda value: value)
    step = SimpleNamespace(encoding=encoding, network=network, residual=residual, ranks=ranks)
    return Blobs(config.losses.blobs, config).value(step)


def scene():
    residual = torch.from_numpy(disc_mask(32, 32, *DISCS))[None, None]
    xy, radius = torch.tensor([[disc[:2] for disc in DISCS]]), torch.tensor([[disc[2] for disc in DISCS]])
    matching = blob_target(xy, radius, torch.ones(1, 2, dtype=torch.bool), (32, 32))
    sizes = torch.full_like(residual, 3.0)
    sizes[..., :16] = 5.0
    return residual, matching, sizes


def test_it_is_lower_where_scores_and_sizes_match():
    residual, matching, sizes = scene()
    best = float(loss_of(matching, sizes, residual))
    assert best < 1
    for score, size in (
        (torch.full_like(matching, 0.05), sizes),
        (matching.roll(6, -1), sizes),
        (1 - matching, sizes),
        (matching, 2 * sizes),
        (matching, 0.5 * sizes),
    ):
        assert float(loss_of(score, size, residual)) > 2 * best


def test_descent_finds_the_things_and_their_sizes():
    residual, _, _ = scene()
    score = torch.full((1, 1, 32, 32), -3.0, requires_grad=True)
    size = torch.full((1, 1, 32, 32), 1.5, requires_grad=True)
    optimiser = torch.optim.Adam([score, size], 0.15)
    for _ in range(60):
        optimiser.zero_grad()
        loss_of(torch.sigmoid(score), size.exp(), residual).backward()
        optimiser.step()
    for x, y, radius in DISCS:
        around = torch.sigmoid(score)[0, 0, int(y) - 3 : int(y) + 4, int(x) - 3 : int(x) + 4]
        assert divmod(int(around.argmax()), 7) == (3, 3) and around.max() > 0.8
        assert float(size.detach().exp()[0, 0, int(y), int(x)]) == pytest.approx(radius, rel=0.25)
    assert torch.sigmoid(score)[0, 0, 28:].max() < 0.05


def test_what_hangs_together_is_one_thing_and_too_much_of_it_teaches_nothing():
    """A cross of five discs; two crosses that touch; one that the edge cuts off."""
    arms = [(-4.0, 0.0), (4.0, 0.0), (0.0, -4.0), (0.0, 4.0), (0.0, 0.0)]
    crosses = [(10.0, 12.0), (40.0, 10.0), (40.0, 22.0), (30.0, 47.0)]
    discs = [(x + across, y + down, 2.5) for x, y in crosses for across, down in arms]
    residual = torch.from_numpy(disc_mask(48, 56, *discs))[None, None]
    raw = torch.zeros(1, 1, 48, 56, requires_grad=True)
    stride = Config.model_validate({"model": SIZED}).model.stride
    loss_of(torch.sigmoid(raw), torch.full_like(residual, 5.0), residual, connected=2 * stride * 7.0).backward()
    assert raw.grad is not None
    push = -raw.grad[0, 0]
    assert push[12, 10] > 0 and push.argmax() == 12 * 56 + 10, "up in the middle of the one"
    assert push[12, 6] < 0, "down on its arms"
    for x, y in crosses[1:]:
        assert push[int(y), int(x)].abs() < 1e-4 * push[12, 10], "neither where nothing is known"
    assert push[30, 10] < 0, "down on the background"


@pytest.mark.parametrize("connected", [None, 30.0])
def test_nothing_to_find_is_no_error(connected):
    score = torch.full((1, 1, 16, 16), 0.1, requires_grad=True)
    loss = loss_of(score, torch.full((1, 1, 16, 16), 3.0), torch.zeros(1, 1, 16, 16), connected=connected)
    loss.backward()
    assert loss.isfinite() and (score.grad > 0).all()


def test_a_model_without_sizes_is_refused_in_one_sentence():
    with pytest.raises(ValidationError, match=r"losses\.blobs needs model\.sizes: it teaches them"):
        Config.model_validate({"losses": {"blobs": {"weight": 0.1}}})
