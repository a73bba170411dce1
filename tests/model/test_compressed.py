"""Layers on small canvases against the dense maps that they stand for."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tusk.model import compressed
from tusk.model.compressed import Axis, Kept, decode_layers, plan, support
from tusk.model.decoder import Decoder
from tusk.model.keypoints import Keypoints
from tusk.model.splat import gaussian_profile, splat_each
from tusk.model.unet import UNet
from tusk.model.upsampled import conv_upsampled


def random_unet(seed, levels, *, channels=3, width=2, dtype=torch.float64):
    """All weights random, norms' included: as they come, those would hide what a wrong norm does."""
    torch.manual_seed(seed)
    unet = UNet(channels, 4, width, levels).to(dtype)
    for parameter in unet.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return unet


def random_layers(seed, xy, channels=3):
    torch.manual_seed(seed)
    xy = torch.tensor([xy], dtype=torch.float64)
    score, descriptors = torch.rand(xy.shape[:2]).double() + 0.1, torch.randn(1, xy.shape[1], channels).double()
    return xy, score, descriptors


def dense(unet, xy, score, descriptors, size, variance):
    return unet(splat_each(xy, score, descriptors, *size, variance))


def places(size):
    """One coordinate: around both ends, outside, and anywhere between."""
    near = st.floats(-6, 14)
    return st.one_of(near, near.map(lambda value: size - 1 - value), st.floats(0, size - 1), st.integers(0, size - 1))


CASES = [  # size, levels, variance, levels on canvases
    ((112, 112), 4, 0.05, 2),
    ((64, 96), 3, 0.05, 2),
    ((96, 128), 5, 0.4, 2),
    ((192, 160), 5, 0.05, 3),
    ((48, 48), 4, 0.05, 1),
    ((16, 128), 3, 0.05, 2),
    ((40, 36), 2, 0.05, 1),
    ((80, 80), 3, 2.0, 1),
]


@pytest.mark.parametrize(("size", "levels", "variance", "canvases"), CASES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_results_and_gradients_equal_the_dense_ones(size, levels, variance, canvases, data):
    assert len(plan(size, levels, variance)) == canvases
    seed = data.draw(st.integers(0, 2**31))
    xy = [[data.draw(places(size[1])), data.draw(places(size[0]))] for _ in range(3)]
    unet = random_unet(seed, levels)
    inputs = [value.requires_grad_() for value in random_layers(seed, xy)]
    weight = torch.randn(3, 4, *size).double()
    results = []
    for decode in (dense, decode_layers):
        decoded = decode(unet, *inputs, size, variance)
        results.append([decoded, *torch.autograd.grad((decoded * weight).mean(), [*inputs, *unet.parameters()])])
    for ours, theirs in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("size", [(72, 96), (96, 72)])
def test_every_place_from_the_border_to_the_middle(size):
    """Each combination of even and odd, near and far from the border, not only those that chance draws.

    The variance is such that the Gaussian, between two pixels, fills the support that it is given.
    """
    variance = 0.1
    assert len(plan(size, 3, variance)) == 2
    xy = [[x / 2, y] for x in range(-2, size[1]) for y in (0, 5, 36)]
    xy = [*xy, *([size[1] - 1 - x, size[0] - 1 - y] for x, y in xy)]
    unet = random_unet(1, 3, width=1)
    inputs = random_layers(1, xy)
    with torch.no_grad():
        ours, theirs = decode_layers(unet, *inputs, size, variance), dense(unet, *inputs, size, variance)
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=0)


@pytest.mark.parametrize("score_scale", [1.0, 0.01])
def test_single_precision_is_as_precise_as_the_dense_way(score_scale):
    """Both are compared with double precision: a norm over an almost constant map magnifies rounding in either."""
    size, unet = (112, 112), random_unet(2, 4, channels=8, width=8)
    xy, score, descriptors = random_layers(2, [[3.25, 60.5], [55.0, 54.75], [110.5, 111.0], [30.5, 2.0]], channels=8)
    inputs = xy, score * score_scale, descriptors
    with torch.no_grad():
        exact = dense(unet, *inputs, size, 0.05)
        single = copy.deepcopy(unet).float()
        error = [
            (decode(single, *(value.float() for value in inputs), size, 0.05) - exact).square().mean().sqrt()
            for decode in (dense, decode_layers)
        ]
    assert error[1] < 1.5 * error[0]
    assert error[1] < 1e-5 * exact.abs().max()


@pytest.mark.parametrize("stride", [1, 2])
def test_the_decoder_uses_it(stride, monkeypatch):
    torch.manual_seed(0)
    decoder = Decoder(4, 4, 3, stride, "layers", background="colour").double()
    xy, score, descriptors = 63 * torch.rand(2, 3, 2).double(), torch.rand(2, 3).double(), torch.randn(2, 3, 4).double()
    points = Keypoints(xy, score, torch.ones(2, 3, dtype=torch.bool))
    with FlopCounterMode(display=False) as few:
        fast = decoder(points, descriptors, (64, 64), 0.05)
    monkeypatch.setattr(compressed, "plan", lambda *_: [])
    with FlopCounterMode(display=False) as many:
        slow = decoder(points, descriptors, (64, 64), 0.05)
    assert few.get_total_flops() < 0.85 * many.get_total_flops()
    for name in ("reconstruction", "layer_rgb", "layer_alpha"):
        torch.testing.assert_close(getattr(fast, name), getattr(slow, name), atol=1e-9, rtol=0)


def test_at_112_pixels_two_levels_are_small_and_a_third_of_the_operations_are_gone():
    kept = plan((112, 112), 4, 0.05)
    assert [(rows.size, columns.size) for rows, columns in kept] == [(20, 20), (24, 24)]
    unet = UNet(32, 4, 32, 4)
    inputs = torch.tensor([[[50.0, 40.0]]]), torch.ones(1, 1), torch.randn(1, 1, 32)
    operations = []
    for decode in (dense, decode_layers):
        with FlopCounterMode(display=False) as counter:
            decode(unet, *inputs, (112, 112), 0.05).sum().backward()
        operations.append(counter.get_total_flops())
    assert operations[1] < 0.67 * operations[0]


def test_where_it_does_not_pay_the_dense_way_is_taken():
    assert plan((112, 112), 1, 0.05) == []
    assert plan((16, 16), 3, 0.05) == []
    assert plan((112, 112), 4, 100.0) == []
    unet = random_unet(3, 3)
    inputs = random_layers(3, [[5.0, 6.0]])
    assert torch.equal(decode_layers(unet, *inputs, (16, 16), 0.05), dense(unet, *inputs, (16, 16), 0.05))


@pytest.mark.parametrize("variance", [0.01, 0.05, 0.3, 2.0, 9.0])
def test_beyond_its_support_a_gaussian_is_nothing(variance):
    centre = torch.cat([torch.linspace(40, 41, 21), torch.tensor([-2.0, 99.5])]).double()
    profile = gaussian_profile(centre, 100, variance)  # (23, 100)
    far = (torch.arange(100) - centre.round().clamp(0, 99)[:, None]).abs() > support(variance)
    assert (profile * far).max() <= 1e-12 * profile.max()


@given(st.integers(0, 3), st.integers(0, 4), st.integers(0, 8), st.integers(0, 20))
def test_rows_and_places_are_inverse_and_gaps_are_like_the_border_rows_beside_them(border, middle, room, moved):
    border, middle = 2 * border, 2 * middle + 2
    room = 2 * room if border else 0
    full = 2 * border + middle + room
    start = border + min(2 * moved, room)
    axis = Axis(Kept(border, middle, full), torch.tensor([start]))
    rows, found = axis.rows()[0].tolist(), axis.places()[0].tolist()
    assert rows == [*range(border), *range(start, start + middle), *range(full - border, full)]
    assert [found[row] for row in rows] == list(range(axis.kept.size))
    left_out = [row for row in range(full) if row not in rows]
    assert all(found[row] == (border - 1 if row < start else border + middle) for row in left_out)


@pytest.mark.parametrize("shape", [(2, 7, 4, 6), (1, 8, 1, 7), (3, 9, 9, 1), (2, 3, 4, 4)])
def test_convolving_before_upsampling_equals_after(shape):
    torch.manual_seed(4)
    x, weight = torch.randn(shape).double().requires_grad_(), torch.randn(4, shape[1], 3, 3).double().requires_grad_()
    ours = conv_upsampled(x, weight)
    theirs = F.conv2d(F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True), weight, padding=1)
    torch.testing.assert_close(ours, theirs)
    wanted = torch.randn_like(ours)
    for one, other in zip(
        torch.autograd.grad((ours * wanted).sum(), [x, weight]),
        torch.autograd.grad((theirs * wanted).sum(), [x, weight]),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
