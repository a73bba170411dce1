"""The losses in a training step, against slow references."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from tusk.geometry.warp import sample_warp
from tusk.losses import StepContext
from tusk.losses.info_nce import info_nce_loss
from tusk.losses.pseudo_labels import pseudo_label_loss
from tusk.losses.two_views import TwoViews, two_views
from tusk.training.trainer import Trainer

from .test_trainer import configured, squares

LAYERS = {"decode": "layers", "layer_window": 16, "background": "colour"}


def directions(count, seed, channels=6):
    return F.normalize(torch.randn(count, channels, generator=torch.Generator().manual_seed(seed)), dim=-1)


def nearest_by_hand(descriptors, others):
    """The most similar of the others, one by one."""
    best = []
    for descriptor in descriptors:
        likeness = [float(descriptor @ other) for other in others]
        best.append(others[likeness.index(max(likeness))])
    return torch.stack(best)


def step_with(losses, others, progress=0.5):
    """The losses, and a step whose memory holds others (N, C)."""
    trainer = Trainer(configured(losses=losses, training={"memory": 50}))
    if others is not None:
        trainer.memory.add(others)
    images = next(squares(2)).float() / 255
    warp = sample_warp(trainer.config.training.second_warp, 1, torch.Generator().manual_seed(0))
    network = trainer.network
    encoding = network.encode(images)
    step = StepContext(trainer.config, network, images, warp, progress, encoding, trainer.ranks, trainer.memory)
    return trainer.losses, step


def test_contrast_with_the_nearest_neighbours_in_other_images():
    first, second, others = directions(7, 0), directions(7, 1), directions(30, 2)
    settings = {"info_nce": {"weight": 1.0, "temperature": 0.3, "neighbours": 0.4}}
    losses, step = step_with(settings, others)
    neighbours = [
        info_nce_loss(nearest_by_hand(first, others), second, 0.3),
        info_nce_loss(nearest_by_hand(second, others), first, 0.3),
    ]
    expected = 0.6 * info_nce_loss(first, second, 0.3) + 0.4 * sum(neighbours) / 2
    torch.testing.assert_close(losses["info_nce"].contrast(first, second, step), expected)


def test_contrast_with_an_empty_memory_is_that_of_the_two_views():
    first, second = directions(7, 0), directions(7, 1)
    losses, step = step_with({"info_nce": {"weight": 1.0, "neighbours": 1.0}}, None)
    torch.testing.assert_close(losses["info_nce"].contrast(first, second, step), info_nce_loss(first, second, 0.2))


def test_joint_types_of_keypoints_and_their_nearest_neighbours():
    first, second, others = directions(7, 0), directions(7, 1), directions(30, 2)
    usable = torch.tensor([True] * 5 + [False, True])
    losses, step = step_with({"mutual_information": {"weight": 1.0, "neighbours": 1.0}}, others)
    joint = losses["mutual_information"].joint_of(TwoViews(first, second, usable), step)

    def types(descriptors):
        return (descriptors @ step.network.prototypes.unit().detach().T / 0.1).softmax(-1)

    expected = torch.zeros(4, 4)
    for side in (first, second):
        for keypoint, neighbour in zip(side[usable], nearest_by_hand(side[usable], others), strict=True):
            expected += torch.outer(types(keypoint), types(neighbour))
    expected = (expected + expected.T) / expected.sum() / 2
    torch.testing.assert_close(joint, expected)


def test_what_losses_share_is_computed_once():
    _, step = step_with({"info_nce": {"weight": 1.0}, "mutual_information": {"weight": 1.0}}, None)
    assert step.two_views is step.two_views and step.decoded is step.decoded and step.is_valid is step.is_valid


@pytest.mark.parametrize("set_scale", [None, 3.0])
def test_the_kmeans_loss_has_the_scale_of_the_types_unless_set(set_scale):
    config = configured(model={"type_scale": 7.0}, losses={"kmeans": {"weight": 1.0, "scale": set_scale}})
    trainer = Trainer(config)
    _, step = step_with({}, None)
    step = replace(step, config=config, network=trainer.network, encoding=trainer.network.encode(step.images))
    distance = torch.cdist(step.valid_descriptors, trainer.network.prototypes.unit())
    expected = -(-(set_scale or 7.0) * distance).log_softmax(-1).amax(-1).mean()
    torch.testing.assert_close(trainer.losses["kmeans"](step), expected, atol=1e-4, rtol=1e-4)


def test_opacity_is_the_share_that_layers_cover():
    trainer = Trainer(configured(model=LAYERS, losses={"opacity": {"weight": 0.5, "binarity": 0.2}}))
    images = next(squares(2)).float() / 255
    warp = sample_warp(trainer.config.training.second_warp, 1, torch.Generator().manual_seed(0))
    terms, _ = trainer.objective(images, warp, 0.5)
    trainer.network.eval()
    with torch.no_grad():
        alpha = trainer.network(images, missing="empty").layer_alpha
    cover = alpha.sum(1)
    expected = 0.5 * cover.mean() + 0.2 * (cover * (1 - cover)).mean()
    assert terms["opacity"].item() == pytest.approx(expected.item(), rel=1e-4)


def test_the_window_follows_its_schedule():
    trainer = Trainer(configured(training={"window": [[0.2, 15], [0.8, 7]]}))
    images = next(squares(2)).float() / 255
    warp = sample_warp(trainer.config.training.second_warp, 1, torch.Generator().manual_seed(0))
    asked = []
    encode = trainer.network.encode
    trainer.network.encode = lambda images, window: asked.append(window) or encode(images, window=window)
    for progress in (0.0, 0.5, 1.0):
        trainer.objective(images, warp, progress)
    assert asked == pytest.approx([15, 11, 7])


def test_scores_follow_the_residual_over_a_window_of_its_own():
    def first(window, blur):
        losses = {"foreground": {"weight": 0.3, "window": blur}}
        training = {"window": [[0.9, 7], [1, window]]}
        trainer = Trainer(configured(model=LAYERS | {"window": window}, losses=losses, training=training))
        images = next(squares(2)).float() / 255
        with torch.no_grad():
            trainer.network.decoder.background.logit.fill_(-12.0)  # black, as the images are
        warp = sample_warp(trainer.config.training.second_warp, 1, torch.Generator().manual_seed(0))
        return trainer.objective(images, warp, 0.5)[0]["foreground"].item()

    # Trained with the same windows, a network is the same whatever window it is to have in use.
    assert first(7, None) == first(11, 7) == first(7, 7)
    assert first(11, None) == first(11, 11) != first(11, 7)


def test_keypoints_on_the_background_are_of_no_type():
    trainer = Trainer(configured(model=LAYERS, losses={"kmeans": {"weight": 1.0}, "foreground": {"weight": 0.3}}))
    network = trainer.network
    images = torch.zeros(2, 3, 32, 32)
    images[:, :, 4:12, 4:12] = 1.0  # all other places are black, as the background is made to be below
    with torch.no_grad():
        network.decoder.background.logit.fill_(-12.0)
    warp = sample_warp(trainer.config.training.second_warp, 1, torch.Generator().manual_seed(0))
    terms, found = trainer.objective(images, warp, 0.5)
    xy = network.to_image(network.encode(images).keypoints.xy)
    on_square = ((xy > 4.5) & (xy < 10.5)).all(-1)
    off_square = ((xy < 1.5) | (xy > 14.5)).any(-1)
    assert found.is_valid[on_square].all()
    assert off_square.any() and not found.is_valid[off_square].any()
    if found.is_valid.any():
        scale = trainer.config.losses.kmeans.scale
        chosen = network.prototypes.log_probability(found.descriptors[found.is_valid], scale)
        assert terms["kmeans"].item() == pytest.approx(-chosen.amax(-1).mean().item(), rel=1e-5)
    else:
        assert terms["kmeans"].item() == 0
    assert 0 < terms["foreground"].item() < 0.6


def test_keypoints_in_uniform_regions_are_of_no_type_and_lose_their_score():
    trainer = Trainer(configured(losses={"uniform_region": {"weight": 0.5}}))
    network = trainer.network
    # Faint noise, so that there are peaks in it: it is uniform all the same.
    images = 0.4 + 0.03 * torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    images[:, :, 4:12, 4:12] = 1.0
    warp = sample_warp(trainer.config.training.second_warp, 1, torch.Generator().manual_seed(0))
    terms, found = trainer.objective(images, warp, 0.5)
    points = network.encode(images).keypoints
    xy = network.to_image(points.xy)
    uniform_region = ((xy < 2) | (xy > 14)).any(-1)  # half a window of 7 is 3 pixels: 1 to each side
    near = ((xy > 3) & (xy < 13)).all(-1)
    assert uniform_region.any() and not found.is_valid[uniform_region].any()
    least, most = 0.5 * (points.score * uniform_region).mean(), 0.5 * (points.score * ~near).mean()
    assert least.item() - 1e-6 <= terms["uniform_region"].item() <= most.item() + 1e-6
    before = points.score[uniform_region].sum().item()
    for _ in range(10):
        trainer.network_optimiser.zero_grad()
        trainer.objective(images, warp, 0.5)[0]["uniform_region"].backward()
        trainer.network_optimiser.step()
    cells = network.to_map(xy[uniform_region]).round().long()
    image = uniform_region.nonzero()[:, 0]
    assert network.encode(images).score_map[image, 0, cells[:, 1], cells[:, 0]].sum().item() < 0.9 * before


def test_keypoints_with_other_surroundings_are_not_compared():
    trainer = Trainer(configured(training={"second_warp": {"surroundings": [0.5, 0.6]}}))
    network = trainer.network
    first = next(squares(4)).float() / 255
    warp = sample_warp(trainer.config.training.second_warp, 4, torch.Generator().manual_seed(0))
    images = torch.cat([first, warp.images(first)])
    encoding = network.encode(images)
    views = two_views(network, encoding, warp, images.shape)
    own = warp.inside(32, 32)[:, 0]
    places = network.to_image(encoding.keypoints.xy[4:]).round().long().clamp(0, 31)
    foreign = torch.stack([~own[i][places[i, :, 1], places[i, :, 0]] for i in range(4)]).flatten()
    assert foreign.any() and not views.usable[foreign].any()
    assert views.usable.any()
    _, found = trainer.objective(images, warp, 0.5)
    assert found.is_valid[:4].all() and not found.is_valid[4:].flatten()[foreign].any()  # nor are they of any type


def test_pseudo_labels_are_the_clusters_of_the_nearest():
    trainer = Trainer(configured(losses={"pseudo_labels": {"weight": 0.5}}, training={"memory": 50}))
    descriptors, others = directions(5, 0), directions(30, 2)
    trainer.memory.add(others)
    trainer.memory.groups = torch.arange(30) % 4
    prototypes = trainer.network.prototypes.unit().detach()
    labels = trainer.memory.pseudo_labels(descriptors, 4)
    expected = -(labels * (descriptors @ prototypes.T / 0.1).log_softmax(-1)).sum(-1).mean()
    torch.testing.assert_close(pseudo_label_loss(descriptors, prototypes, labels), expected)

    images = next(squares(2)).float() / 255
    warp = sample_warp(trainer.config.training.second_warp, 1, torch.Generator().manual_seed(0))
    assert trainer.objective(images, warp, 0.5)[0]["pseudo_labels"].item() > 0
    trainer.memory.groups = None
    assert trainer.objective(images, warp, 0.5)[0]["pseudo_labels"].item() == 0
