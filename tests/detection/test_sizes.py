"""Things of several sizes through the whole chain: sizes in the picture's own pixels, tiles of any shape, and files."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import ValidationError

import tusk
from tests.detection.discs import disc_model
from tests.detection.test_tiling import found
from tests.model.test_unet import SIZED
from tests.pictures import apart, draw_discs
from tusk.cli.main import main
from tusk.config import Config
from tusk.data.flat_field import flatten_background
from tusk.detection import predictor
from tusk.detection.pipeline import detect_batch
from tusk.detection.predictor import Predictor
from tusk.detection.settings import settings_of
from tusk.detection.tiling import cut_tiles, join
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, save_model

HEIGHT, WIDTH = 150, 330
DISCS = apart(np.random.default_rng(0), HEIGHT, WIDTH, [16, 14, 9, 9, 9, 8, 8, 4, 4])
PICTURE = draw_discs(HEIGHT, WIDTH, DISCS, gradient=(-20, 10))


def matched(detections, discs=DISCS, within=2.0):
    """The disc of each detection; each disc has one, and only one."""
    places = np.array([disc[:2] for disc in discs])
    distance = np.hypot(*(detections.xy[:, None] - places).T).T  # (N, discs)
    nearest = distance.argmin(1)
    assert sorted(nearest.tolist()) == list(range(len(discs))) and distance.min(1).max() < within
    return [discs[place] for place in nearest]


@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0])
def test_every_disc_once_with_its_size_whatever_the_scale(scale):
    discs = [disc for disc in DISCS if disc[2] * scale > 3]
    found = Predictor(disc_model(data={"scale": scale})).detect(draw_discs(HEIGHT, WIDTH, discs))
    for one, (_, _, radius) in zip(found, matched(found, discs), strict=True):
        assert one.size == pytest.approx(2 * radius, rel=0.25)
    assert found.size.shape == (len(discs),)


def test_tiles_are_larger_and_oblong_where_norms_allow_it_and_find_the_same(monkeypatch):
    """150 x 330 pixels: tiles of 150 x 256, or squares of 96 as in training."""
    monkeypatch.setattr(predictor, "_LARGEST_TILE", 256)
    few, many = disc_model(), disc_model(norm="group")
    sizes = []
    for model in (few, many):
        forward, seen = model.network.forward, set()
        sizes.append(seen)

        def watched(images, *args, forward=forward, seen=seen, **options):
            seen.add(tuple(images.shape[2:]))
            return forward(images, *args, **options)

        model.network.forward = watched
    ours, theirs = Predictor(few).detect(PICTURE), Predictor(many).detect(PICTURE)
    assert sizes == [{(150, 256)}, {(96, 96)}]
    first, second = matched(ours), matched(theirs)
    assert sorted(first) == sorted(second)
    np.testing.assert_allclose(
        ours.size[np.argsort([disc[0] for disc in first])],
        theirs.size[np.argsort([disc[0] for disc in second])],
        rtol=0.15,
    )
    assert ours.mask_map.shape == (HEIGHT, WIDTH) and set(np.unique(ours.mask_map)) == set(range(len(DISCS) + 1))


def test_masks_cover_their_discs():
    found = Predictor(disc_model()).detect(PICTURE)
    for one, (_, _, radius) in zip(found, matched(found), strict=True):
        assert one.mask[round(one.y), round(one.x)]
        assert one.mask.sum() == pytest.approx(np.pi * radius**2, rel=0.45)


def test_a_picture_with_few_things_is_not_at_its_limit():
    """The network leaves empty slots away; those that are left are all used, but there were more."""
    for norm in ("channel", "group"):
        found = Predictor(disc_model(norm=norm)).detect(PICTURE)
        assert len(found) == len(DISCS) < found.limit and not found.at_limit
        assert Predictor(disc_model(norm=norm), keypoints=4).detect(PICTURE).at_limit


@torch.no_grad()
def test_full_only_where_every_slot_that_was_asked_for_is_used():
    model = disc_model()
    images = torch.from_numpy(flatten_background(PICTURE)).permute(2, 0, 1)[None].float() / 255
    for keypoints, full in ((40, False), (len(DISCS) + 1, False), (3, True)):
        batch = detect_batch(model.network, images, settings_of(model, keypoints))
        assert batch.full.tolist() == [full]


def test_an_empty_picture_holds_nothing():
    empty = Predictor(disc_model()).detect(np.full((100, 120, 3), 90, np.uint8))
    assert len(empty) == 0 and empty.size.shape == (0,) and not empty.mask_map.any()


def test_a_picture_smaller_than_a_tile():
    small = draw_discs(50, 60, [(30, 22, 8)])
    (one,) = Predictor(disc_model()).detect(small)
    np.testing.assert_allclose((one.x, one.y), (30, 22), atol=1)


def test_parts_keep_their_sizes():
    every = replace(found([(5, 5), (20, 20), (30, 8)]), size=np.array([4.0, 9.0, 2.5]))
    assert every[1:].size.tolist() == [9.0, 2.5]
    assert every[[2, 0]].size.tolist() == [2.5, 4.0]
    assert every.filter(types=[1]).size.tolist() == [9.0]
    assert [one.size for one in every] == [4.0, 9.0, 2.5]
    assert [row["size"] for row in every.rows()] == [4.0, 9.0, 2.5]


def test_without_sizes_it_is_the_side_of_the_box():
    every = replace(found([(5, 5), (20, 20)]), box_side=13.0)
    assert every.size is None and every[0].size == 13.0
    assert [row["size"] for row in every.rows()] == [13.0, 13.0]
    assert every[:1].size is None


def test_tiles_joined_keep_each_ones_size():
    tiles = cut_tiles(40, 80, (40, 40))
    parts = [
        replace(found([(10, 10)], score=[0.3]), size=np.array([5.0])),
        found([]),
        replace(found([(30, 20)], score=[0.9]), size=np.array([12.0])),
    ]
    parts[1] = replace(parts[1], size=np.zeros(0))
    joined = join(parts, tiles, 40, 80, 4.0, 100)
    assert joined.xy.tolist() == [[70, 20], [10, 10]] and joined.size.tolist() == [12.0, 5.0]


@pytest.mark.parametrize(("height", "width"), [(30, 50), (50, 30), (64, 30)])
def test_oblong_tiles_cover_every_pixel_once(height, width):
    owners = np.zeros((131, 97), int)
    for tile in cut_tiles(131, 97, (height, width)):
        owners[slice(*tile.down.own), slice(*tile.across.own)] += 1
        assert tile.of(np.zeros((131, 97, 3), np.uint8), (height, width)).shape == (height, width, 3)
    assert (owners == 1).all()


def test_the_column_in_the_file(tmp_path):
    """Of a model that has learnt nothing, and leaves nothing out."""
    detection = {"min_score": 0.0, "min_explained": -1e9, "min_gain": -1e9}
    data = {"size": 96, "fit": "tiles", "contrast": "flat"}
    config = Config.model_validate({"data": data, "model": SIZED, "detection": detection})
    model, picture = tmp_path / "model.safetensors", tmp_path / "a.png"
    save_model(model, StoredModel(seeded_network(config.model, 0), config))
    Image.fromarray(PICTURE).save(picture)
    main(["detect", str(model), str(picture), "--out", str(tmp_path / "out")])
    with (tmp_path / "out" / "detections.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = tusk.load(model).detect(picture)
    assert len(rows) == len(found) > 0
    assert [float(row["size"]) for row in rows] == pytest.approx(found.size.tolist(), rel=1e-3)


def test_relocation_is_refused_with_sizes():
    settings = {"model": SIZED, "detection": {"relocate_keypoints": 2}}
    with pytest.raises(ValidationError, match=r"relocate_keypoints needs a model without model\.sizes"):
        Config.model_validate(settings)
