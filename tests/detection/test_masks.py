"""Masks in the original's pixels against a slow reading of every pixel; run lengths against COCO's own reader."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detection.bright import detect
from tusk.config import Config, DataConfig
from tusk.data.picture_framing import frame_for
from tusk.detection import masks
from tusk.detection.masks import mask_map
from tusk.detection.rle import packed, run_lengths
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel


@pytest.mark.parametrize(("width", "height"), [(31, 17), (9, 25), (8, 8)])
@pytest.mark.parametrize("fit", ["letterbox", "centre-crop"])
def test_every_pixel(width, height, fit, monkeypatch):
    monkeypatch.setattr(masks, "_VALUES_AT_ONCE", 400)  # several strips
    frame = frame_for(width, height, DataConfig(size=16, fit=fit), 8)
    rng = np.random.default_rng(1)
    alpha = rng.dirichlet(np.full(4, 0.4), (frame.height, frame.width)).transpose(2, 0, 1)[:3]  # the fourth: background
    kept = np.array([True, False, True])
    shares = np.stack([1 - alpha.sum(0), *alpha]).astype(np.float32)
    found = mask_map(torch.from_numpy(shares), kept, frame.placement, width, height)
    place = frame.placement
    for row in range(height):
        for column in range(width):
            x, y = place.to_network([column, row])
            x = min(max(x, place.column), place.column + place.columns - 1)
            y = min(max(y, place.row), place.row + place.rows - 1)
            left, top = int(x), int(y)
            right, bottom = min(left + 1, frame.width - 1), min(top + 1, frame.height - 1)
            values = []
            for share in [shares[0], *(share for share, stays in zip(shares[1:], kept, strict=True) if stays)]:
                above = share[top, left] * (left + 1 - x) + share[top, right] * (x - left)
                below = share[bottom, left] * (left + 1 - x) + share[bottom, right] * (x - left)
                values.append(above * (top + 1 - y) + below * (y - top))
            assert found[row, column] == [0, 1, 3][int(np.argmax(values))]


def test_a_model_with_layers_gives_masks_of_the_original_size():
    settings = {"keypoints": 3, "width": 8, "levels": 2, "window": 7, "decode": "layers", "background": "colour"}
    config = Config.model_validate({"data": {"size": 32}, "model": settings})
    model = StoredModel(seeded_network(config.model, 3).eval(), config)
    image = np.random.default_rng(0).integers(0, 256, (70, 50, 3), dtype=np.uint8)
    found = detect(model, image, min_gain=-np.inf)
    assert found.mask.shape == (3, 70, 50) and found.mask.any() and found.mask.sum(0).max() == 1
    assert detect(model, image, min_gain=np.inf).mask_map.max() == 0  # what is left out leaves no mask


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([0.0, 0.02, 0.5, 1.0]), st.integers(0, 1000))
def test_run_lengths_are_cocos(height, width, share, seed):
    coco = pytest.importorskip("pycocotools.mask")
    mask = np.random.default_rng(seed).random((height, width)) < share
    counts = run_lengths(mask)
    assert sum(counts) == mask.size
    flat = np.concatenate([np.full(count, place % 2, bool) for place, count in enumerate(counts)])
    assert np.array_equal(flat.reshape(width, height).T, mask)
    text = packed(counts)
    assert text.encode() == coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"]
    assert np.array_equal(coco.decode({"size": [height, width], "counts": text}), mask)


def test_long_runs():
    coco = pytest.importorskip("pycocotools.mask")
    mask = np.zeros((3000, 2000), bool)
    mask[100:2900, 5] = mask[:, 1000:1900] = True
    assert packed(run_lengths(mask)).encode() == coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"]
