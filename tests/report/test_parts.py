"""Layers, t-SNE, curves and empty places by themselves."""

import math
from dataclasses import replace

import numpy as np
import torch

from tests.report.subjects import images, subject
from tusk.report.curves import read_charts
from tusk.report.embedding import embed
from tusk.report.gallery import type_cards
from tusk.report.layers import contact, take_apart
from tusk.report.named import plain_types
from tusk.report.point_advice import empty_keypoints
from tusk.report.predictions import predict


def test_contact_counts_sides_between_things():
    mask = np.zeros((5, 6), np.uint8)
    mask[1:3, 1:3], mask[1:3, 3:5], mask[4, 5] = 1, 2, 3
    assert contact(mask) == 2
    assert contact(np.eye(4, dtype=np.uint8)) == 0


def test_images_whose_things_touch_come_first():
    layered = subject(model={"decode": "layers"})
    shown = images("attributes")
    apart = take_apart(layered.network, predict(layered.network, shown.sample, 0))
    touching = sorted((contact(truth.mask) for truth in shown.sample.truths), reverse=True)
    chosen = [contact((image.true_mask[..., 0] * (image.true_mask[..., 0] > 24)).astype(np.uint8)) for image in apart]
    assert chosen == touching[:4]
    for image in apart:
        assert len(image.layers) == 3 and math.isclose(sum(layer.share for layer in image.layers), 1)
        assert image.layers[0].picture.shape == (32, 32, 4)
        # Without a background the layers together are opaque.
        assert np.abs(sum(layer.alpha[..., 0].astype(int) for layer in image.layers) - 255).max() <= 3
    assert take_apart(subject().network, predict(subject().network, shown.sample, 0)) == []


def test_crops_are_those_of_the_surest_keypoints():
    about, shown = subject(), images("nothing", 6)
    predictions = predict(about.network, shown.sample, 0)
    types = plain_types(about.network.config.types, about.network.prototypes.centres().detach())
    for card in type_cards(about.network, predictions, types):
        sure = sorted(
            (float(predictions.confidence[i, k]), -i, -k)
            for i, k in (predictions.label == card.number).nonzero().tolist()
        )
        assert len(card.crops) == min(8, len(sure)) and card.count == len(sure)
        if sure:
            _, i, k = sure[-1]
            x, y = (round(float(value)) for value in predictions.xy[-i, -k])
            middle = card.crops[0][card.crops[0].shape[0] // 2 - 1, card.crops[0].shape[1] // 2 - 1]
            assert np.array_equal(middle, predictions.sample.images[-i, :, y, x].numpy())


def test_the_plane_is_the_same_every_time_and_groups_lie_apart():
    about = subject()
    predictions = predict(about.network, images("nothing").sample, 0)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, predictions.label.shape)
    descriptors = np.eye(6)[groups] + 0.05 * rng.standard_normal((*groups.shape, 6))
    predictions = replace(predictions, descriptors=torch.as_tensor(descriptors, dtype=torch.float32))
    prototypes = torch.eye(6)[:3]
    plane, again = embed(predictions, prototypes), embed(predictions, prototypes)
    assert np.array_equal(plane.descriptors, again.descriptors) and len(plane.descriptors) == 120
    nearest = np.linalg.norm(plane.descriptors[:, None] - plane.prototypes, axis=-1).argmin(1)
    assert (nearest == groups.flatten()[plane.chosen]).mean() > 0.95
    # Descriptors that have all become alike are no reason to fail.
    alike = replace(predictions, descriptors=torch.ones_like(predictions.descriptors))
    assert np.isfinite(embed(alike, torch.ones(4, 6)).descriptors).all()
    assert embed(replace(predictions, found=torch.zeros_like(predictions.found)), prototypes) is None


def test_curves_survive_what_a_kill_leaves(tmp_path):
    assert read_charts(tmp_path) == []
    lines = [f'{{"step": {step}, "progress": 0, "info_nce": {step}, "kmeans": 0.0}}' for step in range(1, 1001)]
    lines[3] = '{"step": 4, "info_nce": NaN}'
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 1001, "info']))
    (tmp_path / "results.csv").write_text("step,agreement,both\n10,0.5,\n20,nan,0.5\n30,0.7,0.6\n")
    charts = {chart.title: chart for chart in read_charts(tmp_path)}
    assert set(charts) == {"Without a label", "By the labels, for display only", "Loss: info_nce"}
    assert charts["Without a label"].curves[0].x == (10, 30)
    loss = charts["Loss: info_nce"].curves[0]
    assert len(loss.x) <= 400 and loss.x[-1] == 1000 and loss.x == loss.y and 4 not in loss.x


def test_keypoints_on_flat_ground_are_empty():
    about, shown = subject(), images("nothing", 4)
    predictions = predict(about.network, shown.sample, 0)
    flat = replace(shown.sample, images=torch.full_like(shown.sample.images, 90))
    assert bool(empty_keypoints(replace(predictions, sample=flat), 7).eq(predictions.found).all())
    on_things = torch.as_tensor(np.stack([_centres(index) for index in range(4)]), dtype=torch.float32)
    assert not bool(empty_keypoints(replace(predictions, xy=on_things), 9).any())


def test_a_large_thing_of_one_colour_is_not_empty_where_the_network_knows_its_background():
    about = subject(model={"decode": "layers", "background": "colour"})
    about.network.decoder.start_at(torch.zeros(3))
    large = torch.zeros(4, 3, 32, 32, dtype=torch.uint8)
    large[:, :, 4:28, 12:] = 200
    predictions = predict(about.network, replace(images("nothing", 4).sample, images=large), 0)
    inside = (
        large[0, 0].float()[predictions.xy[..., 1].round().long(), predictions.xy[..., 0].round().long()] > 0
    )  # (4, K)
    off = (predictions.xy[..., 0] < 8) | (
        predictions.xy[..., 0] > 15
    )  # away from the edge that is blurred by the stride
    empty = empty_keypoints(predictions, 7)
    assert torch.equal(empty[off & predictions.found], ~inside[off & predictions.found]) and off.any()
    assert not empty[~predictions.found].any()
    assert predict(subject().network, images("nothing", 4).sample, 0).bare is None


def _centres(index):
    from tests.report.subjects import Squares

    return Squares("class").truth(index).points
