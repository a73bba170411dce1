"""Layers on small canvases that are placed at their keypoint's place and size."""

import pytest
import torch
import torch.nn.functional as F

from tests.model.test_unet import SIZED
from tusk.config import Config, ModelConfig
from tusk.data.flat_field import LEVEL
from tusk.model.canvas import CanvasDecoder, place_canvases
from tusk.model.keypoints import Keypoints
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, load_model, save_model


def noise(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_canvas_of_the_images_size_is_put_back_unchanged():
    """A canvas reaches 1.5 radii to each side of its keypoint; pixels and canvas then fall together."""
    canvases = noise(2, 4, 16, 16)
    placed, inside = place_canvases(canvases, torch.full((2, 2), 7.5), torch.full((2,), 8 / 1.5), (16, 16))
    torch.testing.assert_close(placed, canvases)
    assert inside.shape == (2, 1, 16, 16) and inside.all()


def test_a_canvas_moves_with_its_place_and_grows_with_its_radius():
    canvases = noise(1, 4, 16, 16)
    placed, inside = place_canvases(canvases, torch.tensor([[12.5, 20.5]]), torch.tensor([8 / 1.5]), (40, 32))
    torch.testing.assert_close(placed[..., 13:29, 5:21], canvases)
    assert inside.sum() == 256 and inside[..., 13:29, 5:21].all()
    double, within = place_canvases(canvases, torch.tensor([[15.5, 15.5]]), torch.tensor([16 / 1.5]), (32, 32))
    assert within.all()
    torch.testing.assert_close(F.avg_pool2d(double, 2)[..., 2:-2, 2:-2], _blurred(canvases)[..., 2:-2, 2:-2])


def _blurred(canvases):
    """What twofold bilinear enlargement and averaging in twos leave: 1/8, 6/8, 1/8 in each direction."""
    once = torch.tensor([1.0, 6.0, 1.0]) / 8
    kernel = torch.outer(once, once).expand(4, 1, 3, 3)
    return F.conv2d(canvases, kernel, padding=1, groups=4)


def test_gradients_of_place_and_radius_against_finite_differences():
    """On a smooth canvas, so that a step does not cross an edge between its pixels unnoticed."""
    ramp = torch.linspace(-1, 1, 16, dtype=torch.float64)
    canvas = torch.exp(-(ramp[:, None] ** 2 + 0.5 * ramp**2) * 2)[None, None]
    xy = torch.tensor([[9.3, 10.8]], dtype=torch.float64, requires_grad=True)
    radius = torch.tensor([4.7], dtype=torch.float64, requires_grad=True)
    weight = noise(1, 1, 20, 22).double()

    def value(xy, radius):
        placed, inside = place_canvases(canvas, xy, radius, (20, 22))
        return (placed * inside * weight).sum()

    given = torch.autograd.grad(value(xy, radius), [xy, radius])
    step = 1e-5
    with torch.no_grad():
        for column in range(2):
            moved = torch.zeros_like(xy)
            moved[0, column] = step
            slope = (value(xy + moved, radius) - value(xy - moved, radius)) / (2 * step)
            assert float(slope) == pytest.approx(float(given[0][0, column]), rel=1e-4, abs=1e-6)
        slope = (value(xy, radius + step) - value(xy, radius - step)) / (2 * step)
        assert float(slope) == pytest.approx(float(given[1]), rel=1e-4, abs=1e-6)
    assert given[0].abs().min() > 1e-3 and given[1].abs() > 1e-3


def points(count=3, batch=2, side=24):
    xy = noise(batch, count, 2, seed=1) * (side - 8) + 4
    score, radius = noise(batch, count, seed=2) * 0.9 + 0.05, noise(batch, count, seed=3) * 4 + 3
    return Keypoints(xy, score, torch.ones(batch, count, dtype=torch.bool), radius)


def decoder(seed=0):
    """As if it had been trained: the last convolution is no longer zero."""
    torch.manual_seed(seed)
    made = CanvasDecoder(6, 2).eval()
    with torch.no_grad():
        made.last.weight.normal_(0, 0.2)
    return made


@torch.no_grad()
def test_before_training_a_layer_is_a_disc_of_the_keypoints_size():
    torch.manual_seed(0)
    one = Keypoints(torch.tensor([[[12.0, 12.0]]]), torch.ones(1, 1), torch.ones(1, 1).bool(), torch.full((1, 1), 5.0))
    alpha = CanvasDecoder(6, 2)(one, noise(1, 1, 6), (24, 24), 0.0).layer_alpha[0, 0, 0]
    y, x = torch.meshgrid(torch.arange(48.0), torch.arange(48.0), indexing="ij")
    distance = (x - 24.5).hypot(y - 24.5)
    assert alpha[distance < 8].min() > 0.5 and alpha[distance > 12].max() < 0.5
    assert (alpha[distance > 22] == 0).all()


@torch.no_grad()
def test_shares_of_layers_and_background_sum_to_one():
    made, given = decoder(), points()
    decoded = made(given, noise(2, 3, 6), (24, 24), 0.0)
    assert decoded.layer_alpha.shape == (2, 3, 1, 48, 48) and decoded.layer_rgb.shape == (2, 3, 3, 48, 48)
    behind = 1 - decoded.layer_alpha.sum(1)
    assert (behind > 0).all()
    torch.testing.assert_close(decoded.cover, 1 - behind)
    composed = (decoded.layer_alpha * decoded.layer_rgb).sum(1) + behind * LEVEL
    torch.testing.assert_close(decoded.reconstruction, composed, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_at_the_maps_size_it_is_about_the_average_of_the_images():
    made, given, descriptors = decoder(), points(), noise(2, 3, 6)
    whole = made(given, descriptors, (24, 24), 0.0)
    small = made(given, descriptors, (24, 24), 0.0, layers=False)
    assert small.layer_alpha is None and small.reconstruction.shape == (2, 3, 24, 24)
    for ours, theirs in ((small.reconstruction, whole.reconstruction), (small.cover, whole.cover)):
        off = (ours - F.avg_pool2d(theirs, 2)).abs()
        assert off.mean() < 0.02 and off.max() < 0.35  # only at the edges of a canvas


@torch.no_grad()
def test_a_keypoint_that_was_not_found_adds_nothing():
    made, given, descriptors = decoder(), points(), noise(2, 3, 6)
    found = torch.tensor([[True, False, True], [False, False, False]])
    some = made(Keypoints(given.xy, given.score * found, found, given.radius), descriptors, (24, 24), 0.0)
    assert not some.layer_alpha[~found].any()
    left = Keypoints(*(values[:1, [0, 2]] for values in (given.xy, given.score, found, given.radius)))
    alone = made(left, descriptors[:1, [0, 2]], (24, 24), 0.0)
    torch.testing.assert_close(some.reconstruction[:1], alone.reconstruction)
    assert (some.reconstruction[1] == LEVEL).all() and (some.cover[1] == 0).all()


def test_how_sure_it_is_changes_nothing_and_gets_no_gradient():
    """A keypoint is not rewarded for what it reconstructs: only the blobs say where things are."""
    made, given, descriptors = decoder(), points(), noise(2, 3, 6)
    place = given.xy.clone().requires_grad_()
    score = given.score.clone().requires_grad_()
    less = Keypoints(place, score * 0.3, given.found, given.radius)
    first = made(given, descriptors, (24, 24), 0.0, layers=False)
    second = made(less, descriptors, (24, 24), 0.0, layers=False)
    torch.testing.assert_close(second.reconstruction, first.reconstruction)
    second.cover.square().sum().backward()
    assert score.grad is None and place.grad is not None and place.grad.abs().sum() > 0


@torch.no_grad()
def test_the_whole_network_with_sizes():
    network = seeded_network(ModelConfig.model_validate(SIZED), 0).eval()
    image = noise(2, 3, 61, 75)
    output = network(image, missing="empty")
    count = output.xy.shape[1]
    assert output.reconstruction.shape == (2, 3, 61, 75) and output.layer_alpha.shape == (2, count, 1, 61, 75)
    assert output.size.shape == (2, count) and (output.size > 0).all()
    encoding = network.encode(image)
    small = network.decode(encoding.keypoints, encoding.descriptors, (61, 75), layers=False)
    assert small.reconstruction.shape == (2, 3, 31, 38), "as the score map"
    torch.testing.assert_close(network.background(image), torch.full((1, 3, 61, 75), LEVEL))


@torch.no_grad()
def test_a_model_that_is_loaded_decodes_as_the_one_that_was_saved(tmp_path):
    """Whatever lay in the memory before: everything that a network computes with is in its file, or made anew."""
    config = Config.model_validate({"model": SIZED})
    network, image = seeded_network(config.model, 0).eval(), noise(1, 3, 64, 64)
    save_model(tmp_path / "model.safetensors", StoredModel(network, config))
    loaded = load_model(tmp_path / "model.safetensors").network
    stored = network.state_dict().keys()
    assert {name for name, _ in network.named_buffers()} <= stored
    first, second = network(image, missing="empty"), loaded(image, missing="empty")
    assert torch.equal(first.layer_alpha, second.layer_alpha)
    assert torch.equal(first.reconstruction, second.reconstruction)


@torch.no_grad()
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("layers", [True, False])
def test_empty_slots_among_many_are_as_if_they_were_not_there(share, layers):
    made, batch, count = decoder(), 3, 50
    xy, radius, score = 24 * noise(batch, count, 2), 1 + 4 * noise(batch, count, seed=1), noise(batch, count, seed=2)
    found, descriptors = noise(batch, count, seed=3) < share, noise(batch, count, 6, seed=4)
    decoded = made(Keypoints(xy, score * found, found, radius), descriptors, (24, 24), 0.0, layers=layers)
    for image in range(batch):
        own = found[image]
        left = Keypoints(xy[image, own][None], score[image, own][None], own[own][None], radius[image, own][None])
        alone = made(left, descriptors[image, own][None], (24, 24), 0.0, layers=layers)
        torch.testing.assert_close(decoded.reconstruction[image], alone.reconstruction[0])
        if layers:
            torch.testing.assert_close(decoded.layer_alpha[image, own], alone.layer_alpha[0])
            assert not decoded.layer_alpha[image, ~own].any()
