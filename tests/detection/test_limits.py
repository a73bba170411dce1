"""What a count cannot show: keypoints that ran out, things too close together, things too small."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.detection.bright import bright_model, detect, shipped, sized_model
from tusk.data.flat_field import LEVEL
from tusk.detection import predictor
from tusk.detection.detections import Detections
from tusk.detection.footprint import detection_bytes
from tusk.detection.limits import Limits, limit_remarks, limits_of
from tusk.detection.pipeline import detect_batch
from tusk.detection.predictor import Predictor
from tusk.detection.records import Record, Totals, found_words, record_of
from tusk.model.storage import StoredModel


def placed(xy, **more):
    xy = np.asarray(xy, float).reshape(-1, 2)
    ones = np.ones(len(xy))
    return Detections(
        source="a.png", width=100, height=80, xy=xy, type=np.zeros(len(xy), int), score=ones, gain=ones,
        probability=ones, descriptor=np.ones((len(xy), 2)), instance=np.arange(len(xy)), **more
    )  # fmt: skip


def spots(places, side=64):
    """Bright dots on black."""
    image = np.zeros((side, side, 3), np.uint8)
    for x, y in places:
        image[y - 1 : y + 2, x - 1 : x + 2] = 255
    return image


def test_a_picture_is_at_its_limit_when_every_keypoint_was_used():
    model = bright_model()
    image = spots([(10, 10), (40, 12), (20, 45)])
    for keypoints, reached in ((1, True), (2, True), (3, True), (4, False)):
        found = detect(model, image, keypoints, min_score=0.51, min_gain=-math.inf)
        assert (found.limit, found.at_limit) == (keypoints, reached), keypoints
        assert limits_of(found).at_limit == reached and found[:1].at_limit == reached
    # Where no more than these fit, more could not be asked for.
    room = detect(model, image, 10_000, min_gain=-math.inf)
    assert not room.at_limit


def test_in_tiles_a_full_tile_or_a_full_picture_is_at_the_limit():
    model = bright_model(size=32, fit="tiles")
    crowd = [(x, y) for x in (6, 16, 26) for y in (6, 16, 26)]  # nine in one corner of a picture of 16 tiles' area
    image = spots(crowd, 128)
    far = spots([(20, 20), (100, 90), (20, 100), (100, 20), (60, 60)], 128)
    few = detect(model, far, 4, min_score=0.51, min_gain=-math.inf)
    assert few.tiled and few.at_limit and few.limit == 4 and len(few) == 4
    # The picture may have 16, but a tile no more than 2 of them: with nine in one tile, it is full.
    own = detect(model, image, min_score=0.51, min_gain=-math.inf)
    assert own.limit == 16 and len(own) < 9 and own.at_limit
    spread = detect(model, far, min_score=0.51, min_gain=-math.inf)
    assert spread.limit == 16 and not spread.at_limit


def test_a_keypoint_that_is_left_out_for_its_gain_is_not_used():
    model: StoredModel = shipped("tetrominoes")
    image = np.full((35, 35, 3), 0, np.uint8)
    image[5:10, 5:25] = (0, 0, 255)  # one piece, three keypoints
    assert not detect(model, image).at_limit
    assert detect(model, image, min_gain=-math.inf).at_limit


def test_crowded_and_small_are_counted():
    grid = [(x, y) for x in range(0, 60, 10) for y in range(0, 60, 10)]
    assert limits_of(placed(grid, box_side=18.0)).crowded == 36
    assert limits_of(placed(grid, box_side=10.0)).crowded == 0
    assert limits_of(placed([(5, 5)], box_side=50.0)).crowded == limits_of(placed([], box_side=50.0)).crowded == 0
    masks = np.zeros((80, 100), np.uint16)
    masks[:3, :3], masks[10:30, 10:30] = 1, 2  # 9 and 400 pixels; the third is hidden
    found = placed([(1, 1), (20, 20), (50, 50)], mask_map=masks, resolution=2.0)
    limits = limits_of(found)
    assert (limits.masks, limits.small, limits.visible) == (2, 1, 4.0)
    assert limits_of(found[1:]).small == 0 and limits_of(replace(found, resolution=1.0)).small == 0
    assert limits_of(found[[]]).masks == 0


def test_limits_add_up_and_survive_as_json():
    first = limits_of(placed([(1, 1)], limit=9, at_limit=True))
    other = limits_of(placed([(1, 1), (60, 60)], limit=36, at_limit=True, tiled=True, resolution=4.0))
    calm = limits_of(placed([], limit=2))
    total = first + calm + other
    assert (total.pictures, total.at_limit, total.limit, total.points, total.visible) == (3, 2, (9, 36), 3, 8.0)
    assert (calm + calm).limit == (0, 0) and Limits() + first == first
    record = record_of(placed([(1, 1)], limit=9, at_limit=True), 1.0)
    assert Record.from_line(record.to_line()) == record and record.limits.at_limit == 1


@pytest.mark.parametrize(
    ("limits", "gain", "words"),
    [
        (
            Limits(pictures=16, at_limit=14, limit=(9, 9)),
            0.5,
            "14 of 16 pictures used all 9 keypoints: raise --keypoints",
        ),
        (Limits(pictures=16, at_limit=16, limit=(9, 9)), 0.0, "how many points were asked for, not how many things"),
        (Limits(pictures=3, at_limit=1, limit=(9, 40), tiled=True), 0.5, "or tiles of them, used all of their 9 to 40"),
        (Limits(pictures=1, points=100, crowded=40), 0.5, "40 of 100 points lie as close together"),
        (Limits(pictures=1, masks=1000, small=300, visible=16.0), 0.5, "300 of 1,000 things came out smaller than"),
    ],
)  # fmt: skip
def test_each_limit_has_its_sentence(limits, gain, words):
    (remark,) = limit_remarks(limits, gain)
    assert words in remark


def test_a_sound_result_is_not_remarked_on():
    calm = Limits(pictures=50, points=400, crowded=30, masks=400, small=5, visible=4.0)
    assert limit_remarks(calm, 0.5) == limit_remarks(calm, -math.inf) == []


def test_the_sentence_of_what_was_found():
    assert found_words(Totals(2, 0, 1, (1,))) == "Found 1 thing in 2 pictures."
    assert found_words(Totals(1, 0, 0, (0, 0), 1)) == "Found 0 things in 1 picture."
    assert found_words(Totals(2000, 0, 1500, (1499, 0, 1), 3)) == (
        "Found 1,500 things in 2,000 pictures: 1,499 of type 0, 1 of type 2. 3 pictures had none."
    )


def test_larger_tiles_take_no_more_memory_than_a_batch_of_trained_ones(monkeypatch):
    """Where what is found does not depend on the image around it, tiles are larger, and fewer at once."""
    shapes, told = [], []

    def seen(network, images, settings, owned):
        shapes.append((*images.shape[::3], settings.keypoints))
        return detect_batch(network, images, settings, owned)

    monkeypatch.setattr(predictor, "detect_batch", seen)
    monkeypatch.setattr(predictor, "check_fits", lambda need, *_: told.append(need))
    model, side, times = (
        sized_model(size=64, fit="tiles"),
        predictor._LARGEST_TILE,
        (predictor._LARGEST_TILE // 64) ** 2,
    )
    image = np.full((side * 3 // 2, side * 3 // 2, 3), round(255 * LEVEL), np.uint8)  # four tiles
    for batch, at_once in ((8, 1), (4 * times, 4)):
        shapes.clear()
        used = Predictor(model, batch=batch)
        used.detect(image)
        assert shapes == [(at_once, side, 2 * 4 * times)] * (4 // at_once)  # 4 for each 64 x 64 pixels, twice
        used.check_memory(1)
        assert told[-1] == detection_bytes(model.config.model, side, at_once, 2 * 4 * times)
