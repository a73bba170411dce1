"""Relocation: an object that the peaks missed is found by the reconstruction error."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detection.bright import shipped
from tusk.config import ModelConfig
from tusk.data.datasets.tetrominoes import Tetrominoes
from tusk.detection.gain import gains
from tusk.detection.relocate import relocate_keypoints
from tusk.model.network import seeded_network

SMALL = {"keypoints": 4, "types": 3, "channels": 6, "width": 8, "levels": 2, "window": 7, "decode": "layers"}


def detected(network, images, number, keypoints=None):
    """The network's output with up to `number` keypoints relocated."""
    output = network(images, keypoints, missing="empty")
    return relocate_keypoints(network, images, output, number, network.config.window)


def errors(output, images):
    return (output.reconstruction - images).square().mean((1, 2, 3))


@pytest.fixture
def trained():
    return shipped("tetrominoes").network.eval()


@pytest.fixture
def images():
    pieces = Tetrominoes("test", 8, seed=0)
    return torch.stack([torch.from_numpy(pieces.image(number)) for number in range(8)]).movedim(-1, 1).float() / 255


@torch.no_grad()
def test_a_thing_without_a_peak_is_found_again(trained, images):
    whole = trained(images)
    # Around the second keypoint of each image the scores are all but taken away.
    lowered = torch.ones(len(images), 1, 36, 36)  # the size that 35 pixels are padded to
    for number, (x, y) in enumerate(trained.to_map(whole.xy[:, 1]).round().int().tolist()):
        lowered[number, 0, max(0, y - 6) : y + 7, max(0, x - 6) : x + 7] = 0.02
    trained.encoder.register_forward_hook(lambda *args: (args[-1][0], args[-1][1] * lowered, None))

    blind = detected(trained, images, 0)
    again = detected(trained, images, 3)
    missed = (blind.xy - whole.xy[:, 1:2]).norm(dim=-1).amin(1) > 6
    assert missed.sum() >= 4, "the test must take something away"
    found = (again.xy - whole.xy[:, 1:2]).norm(dim=-1).amin(1) < 6
    assert found[missed].float().mean() >= 0.75
    assert errors(again, images)[missed].mean() < 0.5 * errors(blind, images)[missed].mean()
    # The new keypoint agrees with the reconstruction: its gain shows that it is needed.
    assert (gains(trained, images, again).amin(1)[missed & found] > 0.5).all()
    assert (again.score.diff() <= 0).all(), "best first"
    assert (again.label == again.probability.argmax(-1)).all()


@torch.no_grad()
def test_a_right_reconstruction_is_left_as_it_is(trained, images):
    first, again = detected(trained, images, 0), detected(trained, images, 3)
    same = (first.xy == again.xy).all(-1).all(-1)
    assert same.float().mean() > 0.8
    assert torch.equal(first.layer_alpha[same], again.layer_alpha[same])


@pytest.mark.parametrize("on_a_thing", [True, False])
@torch.no_grad()
def test_a_highlight_gets_no_keypoint_of_its_own(trained, images, monkeypatch, on_a_thing):
    first = detected(trained, images, 0, 5)  # three things: two keypoints are not needed
    covered = first.layer_alpha.sum(1)  # (B, 1, H, W)
    spots = torch.zeros_like(covered)
    for number, (x, y) in enumerate(first.xy[:, 0].round().int().tolist()):
        spots[number, 0, y - 3 : y + 4, x - 3 : x + 4] = 1
    spots = spots * (covered > 0.9) if on_a_thing else spots.flip(-1) * (covered < 0.1)
    lit = torch.where(spots > 0, 1.0, images)

    def fills_the_spot(_network, image, xy, *_):
        """Whatever is tried out would mend the spot, and nothing else."""
        shown = spots[[bool((image == one).all()) for one in lit]].expand(xy.shape[1], -1, -1, -1)
        return torch.ones_like(shown).expand(-1, 3, -1, -1), 1e3 * shown

    monkeypatch.setattr("tusk.detection.relocate._alone", fills_the_spot)
    before, after = detected(trained, lit, 0, 5), detected(trained, lit, 1, 5)
    changed = (before.reconstruction != after.reconstruction).flatten(1).any(1)
    large = spots.sum((1, 2, 3)) >= 12
    assert large.sum() >= 4, "the test must show something"
    if on_a_thing:
        assert not changed.any()
    else:  # some spots have a peak of their own from the first
        assert changed[large].float().mean() >= 0.5


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 2]), st.sampled_from([None, 16]), st.integers(1, 3))
@torch.no_grad()
def test_the_error_never_grows_and_layers_make_up_the_reconstruction(seed, stride, window, number):
    config = {**SMALL, "stride": stride, "layer_window": window, "background": "picture"}
    network = seeded_network(ModelConfig.model_validate(config), seed).eval()
    images = torch.rand(2, 3, 30, 34, generator=torch.Generator().manual_seed(seed))
    first, again = detected(network, images, 0), detected(network, images, number)
    assert (errors(again, images) <= errors(first, images) + 1e-6).all()
    alpha = again.layer_alpha
    assert (alpha.sum(1) <= 1 + 1e-5).all()
    laid = (alpha * again.layer_rgb).sum(1) + (1 - alpha.sum(1)) * network.background(images)
    torch.testing.assert_close(laid, again.reconstruction, atol=1e-4, rtol=0)
    for name, value in vars(first).items():
        there = getattr(again, name)
        assert there is value is None if name == "size" else there.shape == value.shape, name
