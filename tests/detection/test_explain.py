"""Keypoints that explain nothing of their own are left out, and what is on a thing alone stays."""

from dataclasses import replace

import pytest
import torch

from tests.model.test_unet import SIZED
from tests.pictures import disc_mask
from tusk.config import ModelConfig
from tusk.data.flat_field import LEVEL
from tusk.detection.explain import explain_away
from tusk.model.network import Output, seeded_network

SIDE = 64
LEAST = 0.5


@pytest.fixture(scope="module")
def network():
    """Only its background and stride are asked for."""
    return seeded_network(ModelConfig.model_validate(SIZED), 0).eval()


def image_of(*discs, value=0.85):
    """(1, 3, H, W): discs on the even grey."""
    share = torch.from_numpy(disc_mask(SIDE, SIDE, *discs))
    return (share * value + (1 - share) * LEVEL).expand(1, 3, -1, -1).contiguous()


def output_of(*discs, value=0.85, found=None):
    """As if the network had drawn a disc of that value for each keypoint (x, y, radius), before the background."""
    count = len(discs)
    weight = torch.stack([50 * torch.from_numpy(disc_mask(SIDE, SIDE, disc)) for disc in discs])
    is_found = torch.tensor([[True] * count if found is None else found])
    weight = weight * is_found[0, :, None, None]
    alpha = (weight / (1 + weight.sum(0)))[None, :, None]
    colours = torch.full((count, 3), value) if isinstance(value, float) else torch.tensor(value)[:, None].expand(-1, 3)
    rgb = colours[None, :, :, None, None].expand(1, count, 3, SIDE, SIDE)
    empty = torch.zeros(1, count)
    return Output(
        feature_map=torch.zeros(1, 6, SIDE // 2, SIDE // 2),
        score_map=torch.zeros(1, 1, SIDE // 2, SIDE // 2),
        xy=torch.tensor([[disc[:2] for disc in discs]], dtype=torch.float32),
        score=torch.linspace(0.9, 0.5, count)[None],
        found=is_found,
        descriptors=torch.zeros(1, count, 6),
        probability=torch.zeros(1, count, 3),
        label=empty.long(),
        reconstruction=(alpha * rgb).sum(1) + (1 - alpha.sum(1)) * LEVEL,
        layer_rgb=rgb,
        layer_alpha=alpha,
        size=2 * torch.tensor([[disc[2] for disc in discs]], dtype=torch.float32),
    )


def kept(network, image, output, least=LEAST):
    left, gain = explain_away(network, image, output, least)
    assert ((gain > 0) == left.found).all(), "what is left has a gain, what is not has none"
    assert not left.layer_alpha[~left.found].any()
    return left.found[0].tolist(), gain[0]


def test_the_gain_of_a_lone_keypoint_is_the_error_that_it_mends(network):
    disc = (30, 33, 9)
    found, gain = kept(network, image_of(disc), output_of(disc))
    assert found == [True]
    wanted = (image_of(disc) - LEVEL).square().mean(1).sum()
    assert float(gain[0]) == pytest.approx(float(wanted), rel=0.1)


def test_of_two_keypoints_on_one_disc_exactly_one_is_left(network):
    disc = (30, 33, 9)
    found, gain = kept(network, image_of(disc), output_of(disc, disc))
    assert sum(found) == 1
    assert gain.max() > 10, "and it has the gain of the whole disc, though the other once covered for it"
    better, worse = (30.0, 33.0, 9.0), (34.0, 33.0, 9.0)  # the second one sticks out on one side
    assert kept(network, image_of(disc), output_of(worse, better))[0] == [False, True]


def test_three_on_one_disc_and_one_elsewhere(network):
    disc, other = (18, 20, 8), (46, 44, 8)
    found, _ = kept(network, image_of(disc, other), output_of(disc, other, disc, disc))
    assert found[1] and sum(found) == 2


def test_two_touching_discs_with_two_keypoints_are_both_left(network):
    discs = ((22, 32, 9), (40, 32, 9))
    assert kept(network, image_of(*discs), output_of(*discs))[0] == [True, True]


def test_a_small_thing_beside_a_large_one_is_left(network):
    discs = ((24, 30, 12), (44, 44, 3))
    assert kept(network, image_of(*discs), output_of(*discs))[0] == [True, True]


def test_a_keypoint_on_the_background_is_left_out(network):
    disc = (18, 20, 8)
    found, _ = kept(network, image_of(disc), output_of(disc, (46, 44, 8)))
    assert found == [True, False]
    # Also one whose layer is as grey as the background: it does no harm, but explains nothing.
    found, _ = kept(network, image_of(disc), output_of(disc, (46, 44, 8), value=[0.85, LEVEL]))
    assert found == [True, False]


def test_one_that_spoils_the_thing_it_lies_on_goes_first(network):
    """A large layer over a small thing explains it, and makes all around it worse."""
    disc = (30, 30, 5)
    assert kept(network, image_of(disc), output_of((30, 30, 14), disc))[0] == [False, True]


def test_a_pale_thing_needs_a_lower_limit(network):
    disc, pale = (30, 30, 9), LEVEL + 0.06
    image, output = image_of(disc, value=pale), output_of(disc, value=pale)
    assert kept(network, image, output, least=0.5)[0] == [False]
    assert kept(network, image, output, least=0.2)[0] == [True]


def test_empty_slots_stay_empty_and_images_do_not_matter_to_each_other(network):
    disc = (30, 33, 9)
    first, second = output_of(disc, disc, found=[True, False]), output_of(disc, disc)
    third = output_of(disc, disc, found=[False, False])
    parts = [first, second, third]
    names = [name for name in vars(first) if getattr(first, name) is not None]
    together = replace(first, **{name: torch.cat([getattr(part, name) for part in parts]) for name in names})
    left, gain = explain_away(network, image_of(disc).expand(3, -1, -1, -1), together, LEAST)
    assert left.found[0].tolist() == [True, False] and left.found[1].sum() == 1 and not left.found[2].any()
    for place, part in enumerate(parts):
        alone, its_gain = explain_away(network, image_of(disc), part, LEAST)
        assert torch.equal(alone.found[0], left.found[place])
        torch.testing.assert_close(its_gain[0], gain[place])


def test_without_a_limit_nothing_is_left_out(network):
    disc = (30, 33, 9)
    output = output_of(disc, disc, (50, 50, 6))
    left, _ = explain_away(network, image_of(disc), output, -torch.inf)
    assert left.found.all()
