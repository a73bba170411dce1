"""A keypoint on a part of another's thing is joined with it."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tusk.config import ModelConfig
from tusk.detection.masks import claim_pixels, label_map, pixel_shares
from tusk.detection.merge import merge_fragments
from tusk.model.network import seeded_network

SIDE = 24
SIZE = {"keypoints": 3, "types": 2, "channels": 8, "width": 8, "levels": 2, "window": 5, "decode": "layers"}


def labels_of(output):
    return label_map(pixel_shares(output.layer_alpha))


def scene(*layers):
    """A network, a grey image, and an output whose layers have these shares: (rows, columns, share), each a list."""
    network = seeded_network(ModelConfig(**SIZE, background="colour"), 0).eval()
    images = torch.full((1, 3, SIDE, SIDE), 0.5)
    alpha = torch.zeros(1, 3, 1, SIDE, SIDE)
    for number, patches in enumerate(layers):
        for rows, columns, share in patches:
            alpha[0, number, 0, rows, columns] = share
    with torch.no_grad():
        output = network(images, missing="empty")
    return network, images, replace(output, layer_alpha=alpha, found=torch.ones_like(output.found))


THING = (slice(2, 18), slice(2, 18), 0.9)
HIGHLIGHT = (slice(2, 8), slice(6, 14), 0.6)


def test_a_highlight_is_joined_with_its_thing():
    # The thing's layer reaches under the highlight's, and would cover it.
    below = (slice(2, 8), slice(6, 14), 0.35)
    apart = (slice(20, 24), slice(20, 24), 0.9)
    _, _, output = scene([THING, below], [HIGHLIGHT], [apart])
    assert set(labels_of(output).unique().tolist()) == {0, 1, 2, 3}
    joined = merge_fragments(output, output, 1.0)
    assert joined.found.tolist() == [[True, False, True]]
    labels = labels_of(joined)[0]
    assert (labels[2:18, 2:18] == 1).all() and (labels[20:, 20:] == 3).all() and (labels == 0).sum() == 24**2 - 272
    torch.testing.assert_close(joined.layer_alpha.sum(1), output.layer_alpha.sum(1))
    assert (joined.layer_alpha[:, 1] == 0).all()
    # All else is as it was.
    assert torch.equal(joined.xy, output.xy) and torch.equal(joined.layer_rgb, output.layer_rgb)


def test_a_thing_beside_another_stays():
    beside = (slice(2, 18), slice(18, 23), 0.9)
    apart = (slice(20, 24), slice(0, 4), 0.9)
    _, _, output = scene([THING], [beside], [apart])
    assert torch.equal(merge_fragments(output, output, 1.0).layer_alpha, output.layer_alpha)


def test_a_thing_that_is_half_hidden_stays():
    # What is output of it has the other thing along a third of its edge, and nothing covers it but a little of that.
    behind = [(slice(18, 22), slice(6, 14), 0.8)]
    _, _, output = scene([THING, (slice(18, 22), slice(6, 14), 0.1)], behind)
    assert merge_fragments(output, output, 1.0).found.all()


def test_parts_of_parts_end_as_one_thing():
    halves = [(slice(2, 18), slice(2, 18), 0.9)], [(slice(2, 8), slice(4, 16), 0.5)], [(slice(3, 6), slice(6, 10), 0.5)]
    halves[0].append((slice(2, 8), slice(4, 16), 0.4))
    halves[0].append((slice(3, 6), slice(6, 10), 0.2))
    halves[1].append((slice(3, 6), slice(6, 10), 0.3))
    _, _, output = scene(*halves)
    joined = merge_fragments(output, output, 1.0)
    assert joined.found.tolist() == [[True, False, False]]
    assert (labels_of(joined)[0, 2:18, 2:18] == 1).all()


def test_without_the_setting_only_pixels_are_claimed():
    network, images, output = scene([THING], [HIGHLIGHT])
    claimed = claim_pixels(network, images, output, 0.1)
    assert merge_fragments(output, claimed, None) is claimed


def signs(shares, claims, number):
    """Pixel by pixel: how much of the layer's pixels others would cover, and how much of its edge one other has."""
    labels = [
        [int(torch.tensor([1 - claims[:, y, x].sum(), *claims[:, y, x]]).argmax()) for x in range(SIDE)]
        for y in range(SIDE)
    ]
    covered, edges = [], {}
    for y in range(SIDE):
        for x in range(SIDE):
            if labels[y][x] != number + 1:
                continue
            behind = max(0.0, 1 - float(shares[:, y, x].sum()))
            covered.append(1 - behind / (1 - float(shares[number, y, x])))
            for row, column in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= row < SIDE and 0 <= column < SIDE and labels[row][column] != number + 1:
                    edges[labels[row][column]] = edges.get(labels[row][column], 0) + 1
    others = [count for label, count in edges.items() if label > 0]
    if not covered or not others:
        return None
    return sum(covered) / len(covered) + max(others) / sum(edges.values())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.6, 1.6))
def test_against_the_slow_reference(seed, least):
    draw = torch.Generator().manual_seed(seed)
    layers = []
    for _ in range(3):
        top, left = torch.randint(0, 12, (2,), generator=draw).tolist()
        high, wide = torch.randint(3, 12, (2,), generator=draw).tolist()
        layers.append([(slice(top, top + high), slice(left, left + wide), 1.0)])
    _, _, output = scene(*layers)
    weight = output.layer_alpha * torch.rand(output.layer_alpha.shape, generator=draw) * 4
    alpha = weight / (1 + weight.sum(1, keepdim=True))
    output = replace(output, layer_alpha=alpha)
    joined = merge_fragments(output, output, least)
    if joined.found.all():
        worst = [signs(alpha[0, :, 0], alpha[0, :, 0], number) for number in range(3)]
        assert all(sign is None or sign < least + 1e-4 for sign in worst)
        assert torch.equal(joined.layer_alpha, alpha)
    else:
        # Whatever is left is no part of anything any more, and nothing was lost on the way.
        left = joined.layer_alpha[0, :, 0]
        worst = [signs(left, left, number) for number in range(3) if joined.found[0, number]]
        assert all(sign is None or sign < least + 1e-4 for sign in worst)
        torch.testing.assert_close(left.sum(0), alpha[0, :, 0].sum(0))
        assert (
            max(sign for number in range(3) if (sign := signs(alpha[0, :, 0], alpha[0, :, 0], number))) >= least - 1e-4
        )


@pytest.mark.parametrize("found", [[True, False, True], [False, False, False]])
def test_what_was_not_found_is_no_part(found):
    _, _, output = scene([THING, (slice(2, 8), slice(6, 14), 0.35)], [HIGHLIGHT])
    output = replace(output, found=torch.tensor([found]))
    assert merge_fragments(output, output, 1.0).found.tolist() == [found]
