"""Norms that settle."""

import pytest
import torch
import torch.nn.functional as F

from tusk.config import ModelConfig
from tusk.model.network import seeded_network
from tusk.model.norms import SettlingNorm, settling_norms


def some(seed, count=3):
    return 2 + 3 * torch.randn(count, 8, 5, 7, generator=torch.Generator().manual_seed(seed))


def norm():
    made = SettlingNorm(4, 8)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        made.weight.uniform_(0.5, 1.5, generator=generator)
        made.bias.uniform_(-1, 1, generator=generator)
    return made


@pytest.mark.parametrize("mode", ["image", "watch"])
def test_at_first_it_is_a_group_norm(mode):
    ours = norm()
    ours.set_mode(mode)
    assert torch.equal(ours(some(1)), F.group_norm(some(1), 4, ours.weight, ours.bias, ours.eps))


def test_it_settles_on_the_mean_of_what_it_watched():
    ours = norm()
    ours.set_mode("watch")
    watched = [some(seed, count) for seed, count in ((1, 3), (2, 3), (3, 3))]
    for batch in watched:
        ours(batch)
    ours.set_mode("settled")
    ours(some(9))  # this one is not watched any more
    groups = torch.cat(watched).view(9, 4, 2 * 5 * 7)
    mean, variance = (
        value.mean(0).repeat_interleave(2)[:, None, None] for value in (groups.mean(-1), groups.var(-1, correction=0))
    )
    expected = (some(4) - mean) / (variance + ours.eps).sqrt() * ours.weight[:, None, None] + ours.bias[:, None, None]
    torch.testing.assert_close(ours(some(4)), expected)


def test_in_use_it_does_not_watch_and_without_watching_it_does_not_settle():
    ours = norm()
    ours.set_mode("settled")
    assert ours.mode == "watch" and not bool(ours.settled)
    ours.eval()(some(1))
    assert int(ours.watched) == 0
    ours.train()(some(1))
    ours.set_mode("settled")
    assert ours.mode == "settled" and int(ours.watched) == 1


def test_a_stored_one_knows_whether_it_has_settled():
    ours = norm()
    for mode in ("watch", "settled"):
        ours.set_mode(mode)
        ours(some(1))
        other = norm()
        other.load_state_dict(ours.state_dict())
        assert other.mode == ("settled" if mode == "settled" else "image")
        assert torch.equal(other.eval()(some(2)), ours.eval()(some(2)))
        ours.train()


def test_what_is_far_off_makes_no_difference_once_the_encoder_has_settled():
    size = {"keypoints": 2, "types": 2, "channels": 8, "width": 8, "levels": 2, "window": 5}
    network = seeded_network(ModelConfig(**size, norms="settling"), 0)
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    crowded = images.clone()
    crowded[..., 40:] = 1.0

    def change():
        network.eval()
        with torch.no_grad():
            before, after = (network.encoder(each)[0] for each in (images, crowded))
        network.train()
        return (before - after)[..., :16].abs().max()

    assert change() > 1e-3
    assert len(settling_norms(network)) == 7 and not settling_norms(network.decoder)
    for mode in ("watch", "settled"):
        for each in settling_norms(network):
            each.set_mode(mode)
        network.encoder(images)
    assert change() == 0
