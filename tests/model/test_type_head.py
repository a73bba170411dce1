"""Vectors for types alone: read from the right places of all levels, and apart from what the decoder paints from."""

import torch

from tusk.config import ModelConfig
from tusk.model.network import Network
from tusk.model.type_head import TypeHead

SMALL = {"keypoints": 3, "types": 4, "channels": 6, "width": 4, "levels": 3, "window": 7, "type_head": 5}


def network(**settings):
    torch.manual_seed(0)
    return Network(ModelConfig(**{**SMALL, **settings}))


def test_levels_are_read_at_the_place_of_the_keypoint():
    head = TypeHead([1, 1, 1], 3, 2)
    seen = []
    head.layers = torch.nn.Sequential(torch.nn.Identity())
    # Each level holds the column, in pixels of the first, of its cells' centres.
    columns = torch.arange(16.0)
    levels = [columns.view(1, 1, 1, -1).expand(1, 1, 16, 16)]
    for _ in range(2):
        levels.append(torch.nn.functional.avg_pool2d(levels[-1], 2))
    for x in (3.0, 5.25, 9.5):
        seen.append(head(levels, torch.tensor([[[x, 7.0]]]))[0, 0])
        torch.testing.assert_close(seen[-1], torch.full((3,), x))


def test_types_have_their_own_vectors_and_the_paint_does_not_depend_on_them():
    net = network(descriptor_space="standardised").eval()
    image = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        before = net(image)
        for parameter in net.encoder.type_head.parameters():
            parameter.add_(torch.randn_like(parameter))
        after = net(image)
    assert torch.equal(before.reconstruction, after.reconstruction)
    assert torch.equal(before.appearance, after.appearance)
    assert not torch.allclose(before.descriptors, after.descriptors, atol=0.1)
    torch.testing.assert_close(after.descriptors.norm(dim=-1), torch.ones(2, 3))


def test_without_a_head_both_are_one():
    output = network(type_head=None)(torch.rand(1, 3, 32, 32))
    assert output.descriptors is output.appearance


def test_describing_the_keypoints_own_places_gives_their_descriptors():
    for settings in ({}, {"type_head": None}, {"descriptor_space": "standardised"}):
        net = network(**settings)
        seen = net.encode(torch.rand(4, 3, 32, 32))
        there = net.describe(seen, slice(1, 3), seen.keypoints.xy[1:3])
        torch.testing.assert_close(there, seen.descriptors[1:3])
