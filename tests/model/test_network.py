"""The whole forward pass: shapes, sizes, strides, and what is refused."""

from dataclasses import replace

import pytest
import torch

from tests.model.test_unet import SIZED
from tusk.config import ModelConfig
from tusk.errors import DataError, UsageError
from tusk.model.keypoints import Keypoints
from tusk.model.network import Network, eval_mode, seeded_network

SMALL = {"keypoints": 3, "types": 5, "channels": 6, "width": 4, "levels": 3, "window": 7}


def network(**settings):
    return seeded_network(ModelConfig(**{**SMALL, **settings}), seed=0).eval()


@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("size", [(32, 48), (41, 35)])
@pytest.mark.parametrize("decode", ["plain", "layers"])
def test_shapes_for_any_size_and_stride(stride, size, decode):
    height, width = size
    output = network(stride=stride, decode=decode)(torch.rand(2, 3, height, width), missing="empty")
    rows, columns = -(-height // stride), -(-width // stride)
    assert output.feature_map.shape == (2, 6, rows, columns)
    assert output.score_map.shape == (2, 1, rows, columns)
    assert output.xy.shape == (2, 3, 2) and output.score.shape == (2, 3)
    assert output.descriptors.shape == (2, 3, 6) and output.probability.shape == (2, 3, 5)
    assert output.label.shape == (2, 3)
    assert output.reconstruction.shape == (2, 3, height, width)
    torch.testing.assert_close(output.descriptors.norm(dim=-1), torch.ones(2, 3))
    torch.testing.assert_close(output.probability.sum(-1), torch.ones(2, 3))
    if decode == "layers":
        assert output.layer_rgb.shape == (2, 3, 3, height, width)
        torch.testing.assert_close(output.layer_alpha.sum(1), torch.ones(2, 1, height, width))
    limit = torch.tensor([width + stride, height + stride])
    assert (output.xy > -stride).all() and (output.xy < limit).all()


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_locations_are_in_image_pixels_whatever_the_stride(stride):
    """A peak of the score map at cell (r, c) must come out at the centre of its s x s block of pixels."""
    net = network(stride=stride, keypoints=1, window=3 * stride if stride % 2 else 3 * stride + 1)

    class OnePeak(torch.nn.Module):
        def forward(self, image):
            rows, columns = image.shape[-2] // stride, image.shape[-1] // stride
            score = torch.full((1, 1, rows, columns), 0.01)
            score[0, 0, 5, 3] = 1.0
            return torch.rand(1, 6, rows, columns), score, None

    net.encoder = OnePeak()
    xy = net(torch.rand(1, 3, 16 * stride, 16 * stride)).xy[0, 0]
    torch.testing.assert_close(xy, torch.tensor([(3 + 0.5) * stride - 0.5, (5 + 0.5) * stride - 0.5]))
    torch.testing.assert_close(net.to_image(net.to_map(xy)), xy)


def test_padding_changes_no_coordinates_and_holds_no_keypoints():
    net = network(keypoints=8, window=5)
    image = torch.rand(1, 3, 29, 33)
    output = net(image, missing="empty")
    assert (output.xy[..., 0] <= 32.5).all() and (output.xy[..., 1] <= 28.5).all()


def test_keypoints_may_differ_between_training_and_use():
    net = network()
    image = torch.rand(1, 3, 48, 48)
    few, many = net(image), net(image, keypoints=6)
    assert many.xy.shape == (1, 6, 2)
    torch.testing.assert_close(many.xy[:, :3], few.xy)


def test_an_image_that_is_too_small_is_refused_in_one_sentence():
    with pytest.raises(DataError, match="image of 15x40 pixels: this network needs at least 16x16"):
        network(levels=5)(torch.rand(1, 3, 40, 15))


def test_more_keypoints_than_peaks_is_refused_or_left_empty():
    net = network(window=31)
    with pytest.raises(UsageError, match="40 keypoints do not fit in 32x32 pixels"):
        net(torch.rand(1, 3, 32, 32), keypoints=40)
    flat = torch.zeros(1, 3, 64, 64)
    net = network(window=7)
    # A constant image has a handful of peaks at most, from the zero padding of the convolutions at its border.
    peaks = int(net(flat, keypoints=60, missing="empty").found.sum())
    assert peaks < 60
    with pytest.raises(UsageError, match=f"an image has only {peaks} peaks"):
        net(flat, keypoints=60)


@pytest.mark.parametrize("background", ["none", "colour"])
@pytest.mark.parametrize("window", [None, 16])
@torch.no_grad()
def test_a_keypoint_that_was_not_found_has_no_layer(window, background):
    """The image is as if only the others had been decoded; with none at all it is background, or black."""
    net = network(decode="layers", layer_window=window, background=background)
    size, thumbnail = (32, 32), torch.zeros(2, 3, 4, 4)
    xy, score = 31 * torch.rand(2, 3, 2), torch.rand(2, 3) + 0.1
    descriptors = torch.randn(2, 3, 6)
    found = torch.tensor([[True, True, False], [False, False, False]])
    decoded = net.decode(Keypoints(xy, score * found, found), descriptors, size, thumbnail=thumbnail)
    assert not decoded.layer_alpha[~found].any() and decoded.layer_alpha[found].any()
    others = Keypoints(xy[:1, :2], score[:1, :2], found[:1, :2])
    alone = net.decode(others, descriptors[:1, :2], size, thumbnail=thumbnail[:1])
    torch.testing.assert_close(decoded.reconstruction[:1], alone.reconstruction)
    torch.testing.assert_close(decoded.layer_alpha[:1, :2], alone.layer_alpha)
    empty = net.background(torch.full((1, 3, 32, 32), 0.5)) if background == "colour" else torch.zeros(1, 3, 32, 32)
    torch.testing.assert_close(decoded.reconstruction[1:], empty)
    sums = net.decode(Keypoints(xy, score * found, found), descriptors, size, thumbnail=thumbnail, layers=False)
    torch.testing.assert_close(sums.reconstruction, decoded.reconstruction, atol=1e-5, rtol=0)


def test_the_window_may_differ_in_use():
    net, image = network(keypoints=20), torch.rand(1, 3, 64, 64)
    narrow, wide = (net(image, 16, window, missing="empty").found.sum() for window in (5, 31))
    assert wide < narrow
    with pytest.raises(UsageError, match="16 keypoints do not fit in 64x64 pixels with a window of 63"):
        net(image, 16, 63)


def test_windowed_layers_equal_whole_ones_where_the_window_covers_everything():
    whole = network(decode="layers")
    windowed = network(decode="layers", layer_window=64)
    image = torch.rand(1, 3, 32, 32)
    torch.testing.assert_close(whole(image).reconstruction, windowed(image).reconstruction)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("background", ["none", "colour"])
def test_windowed_layers_are_clear_outside_their_window(stride, background):
    net = network(decode="layers", layer_window=16, stride=stride, background=background, keypoints=2)
    image = torch.rand(1, 3, 64, 64)
    output = net(image, missing="empty")
    rows, columns = torch.meshgrid(torch.arange(64), torch.arange(64), indexing="ij")
    for k in range(2):
        x, y = output.xy[0, k]
        far = ((columns - x).abs() > 8 + stride) | ((rows - y).abs() > 8 + stride)
        assert (output.layer_alpha[0, k, 0][far] == 0).all()
        assert (output.layer_alpha[0, k, 0][~far] > 0).any()
    assert output.reconstruction.isfinite().all()
    output.reconstruction.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("size", [(64, 64), (50, 61)])
@pytest.mark.parametrize("background", ["none", "colour", "picture"])
def test_sums_over_windows_equal_their_layers(background, size):
    """And give the same gradients: the sums are what training uses."""
    net = network(
        decode="layers", layer_window=24, stride=2, background=background, keypoints=5, layer_base_colour=True
    ).double()
    image = torch.rand(2, 3, *size, dtype=torch.float64)
    target = torch.rand(2, 3, *size, dtype=torch.float64)
    results = []
    for layers in (True, False):
        net.zero_grad()
        encoding = net.encode(image)
        decoded = net.decode(
            encoding.keypoints, encoding.descriptors, size, thumbnail=encoding.thumbnail, layers=layers
        )
        ((decoded.reconstruction - target).square().mean() + decoded.cover.mean()).backward()
        gradients = [p.grad.clone() for p in net.parameters() if p.grad is not None]
        results.append((decoded.reconstruction, decoded.cover, *gradients))
        assert (decoded.layer_alpha is not None) == layers
    for slow, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("window", [None, 24])
def test_a_tint_shifts_the_colour_of_its_layer_and_not_its_mask(window):
    net = network(decode="layers", layer_window=window, background="colour", keypoints=2, layer_base_colour=True)
    image = torch.rand(1, 3, 48, 48)
    with torch.no_grad():
        before = net(image)
        net.decoder.tint.weight.add_(0.5)
        after = net(image)
    torch.testing.assert_close(after.layer_alpha, before.layer_alpha)
    shift = (after.layer_rgb.logit() - before.layer_rgb.logit()) * (before.layer_alpha > 0)
    expected = 0.5 * after.descriptors.sum(-1)  # (1, 2)
    for k in range(2):
        encoding = shift[0, k][(before.layer_alpha[0, k] > 0).expand(3, -1, -1)]
        torch.testing.assert_close(encoding, expected[0, k].expand_as(encoding), rtol=1e-3, atol=1e-4)


def test_windowed_patches_land_around_their_keypoint():
    """A decoder that gives the splat itself must put its brightest pixel at the keypoint."""
    net = network(decode="layers", layer_window=16, background="colour", keypoints=1)

    class Shows(torch.nn.Module):
        def forward(self, splat):
            bright = splat.abs().sum(1, keepdim=True)
            return torch.cat([bright * 50] * 3 + [bright * 50], 1)

    net.decoder.unet = Shows()
    for seed in range(5):
        image = torch.rand(1, 3, 40, 40, generator=torch.Generator().manual_seed(seed))
        output = net(image)
        place = int(output.layer_alpha[0, 0, 0].argmax())
        x, y = output.xy[0, 0].tolist()
        assert abs(place % 40 - x) <= 0.51 and abs(place // 40 - y) <= 0.51


def test_standardised_descriptors_learn_their_scale_in_training_and_use_it_after():
    net = network(descriptor_space="standardised", keypoints=6, window=5)
    raw = torch.randn(200, 6, 6) * 3 + 5
    net.train()
    for _ in range(200):
        descriptors, _ = net.descriptor_space(raw)
    assert descriptors.mean((0, 1)).abs().max() < 0.05
    net.eval()
    used, statistics = net.descriptor_space(raw)
    torch.testing.assert_close(used, descriptors, atol=0.02, rtol=0)
    torch.testing.assert_close(statistics.mean, torch.full((6,), 5.0), atol=0.3, rtol=0)


def test_the_seed_alone_decides_the_first_weights():
    before = torch.random.get_rng_state()
    first, again = seeded_network(ModelConfig(**SMALL), 3), seeded_network(ModelConfig(**SMALL), 3)
    other = seeded_network(ModelConfig(**SMALL), 4)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.encoder.unet.last.weight, other.encoder.unet.last.weight)


def test_plain_mode_never_makes_a_map_for_each_keypoint():
    """The largest tensor that the plain decoder's splat makes has no K x C x H x W elements."""
    from torch.utils._python_dispatch import TorchDispatchMode

    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            for value in result if isinstance(result, tuple | list) else (result,):
                if isinstance(value, torch.Tensor):
                    largest = max(largest, value.untyped_storage().nbytes() // value.element_size())
            return result

    from tusk.model.splat import splat_sum

    with Watch():
        splat_sum(torch.rand(2, 20, 2) * 60, torch.rand(2, 20), torch.rand(2, 20, 8), 64, 64, 0.05)
    assert largest <= 2 * 8 * 64 * max(64, 20)


def test_types_follow_the_nearest_prototype():
    net: Network = network()
    probability = net.prototypes(net.prototypes.unit())
    assert probability.argmax(-1).tolist() == [0, 1, 2, 3, 4]
    torch.testing.assert_close(net.prototypes.unit().norm(dim=-1), torch.ones(5))


@torch.no_grad()
def test_slots_that_no_image_uses_are_left_away():
    net = network(**SIZED)
    encoding = net.encode(torch.rand(2, 3, 64, 64))
    score = torch.tensor([[0.9, 0.5, 0.2, 0.1, 0, 0], [0.8, 0.3, 0.3, 0.05, 0.02, 0]])
    points = Keypoints(encoding.keypoints.xy, score, score > 0, encoding.keypoints.radius)
    encoding = replace(encoding, keypoints=points)
    for least, left in ((0.0, 5), (0.04, 4), (0.15, 3), (0.6, 1), (0.95, 1)):
        trimmed = encoding.trimmed(least)
        assert trimmed.descriptors.shape[:2] == trimmed.keypoints.radius.shape == (2, left)
        torch.testing.assert_close(trimmed.keypoints.score, score[:, :left])
    nothing = replace(encoding, keypoints=Keypoints(points.xy, 0 * score, score < 0, points.radius))
    assert nothing.trimmed(0.0).keypoints.found.tolist() == [[False], [False]]


@torch.no_grad()
def test_leaving_empty_slots_away_changes_nothing_else():
    net, image = network(**SIZED), torch.rand(1, 3, 64, 64)
    few = net(image, 200, missing="empty")
    encoding = net.encode(image, 200)
    whole = net.decode(encoding.keypoints, encoding.descriptors, (64, 64), thumbnail=encoding.thumbnail)
    assert few.found.sum() == encoding.keypoints.found.sum() == few.found.shape[1] < 200
    torch.testing.assert_close(few.reconstruction, whole.reconstruction, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_put_back_also_after_an_error(training):
    net = network().train(training)
    with pytest.raises(ValueError, match="inside"), eval_mode(net):
        assert not net.training and not net.encoder.training
        raise ValueError("inside")
    assert net.training == net.encoder.training == training


def test_several_prototypes_make_up_one_type():
    one, many = network(types=3), network(types=2, prototypes=(0, 1, 0))
    many.load_state_dict(one.state_dict())
    image = torch.rand(1, 3, 32, 32)
    apart, merged = one(image).probability, many(image).probability
    torch.testing.assert_close(merged[..., 0], apart[..., 0] + apart[..., 2])
    torch.testing.assert_close(merged[..., 1], apart[..., 1])
    assert many.prototypes.centres().shape[0] == 2
