"""Detections of many images in one: what each batch of images gives has to fit together."""

import math

import torch

from tests.detection.bright import sized_model
from tusk.data.flat_field import GREY
from tusk.detection.settings import settings_of
from tusk.report.predictions import predict
from tusk.report.sample import Sample


def test_batches_with_other_numbers_of_sized_keypoints_are_joined():
    """Slots that no image of a batch uses are left away there, but may be needed in the next batch."""
    images = torch.full((27, 3, 64, 64), GREY, dtype=torch.uint8)
    images[:26, :, 9:15, 9:15] = 255
    images[26, :, 30:36, 40:46] = images[26, :, 50:56, 9:15] = 255
    images[25:, :, 9:15, 30:36] = 255
    model = sized_model()
    settings = settings_of(model, min_score=0.3, min_gain=-math.inf)
    found = predict(model.network, Sample("spots", images, (), ()), 3, settings)
    assert found.found.sum(1).tolist() == [1] * 25 + [2, 3]
    assert found.xy.shape == (27, 3, 2) and not found.score[:25, 1:].any()
    assert found.bare is not None and found.bare.shape == (27, 3)
