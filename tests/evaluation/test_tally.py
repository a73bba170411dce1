"""Objects and detections gathered over batches: detections made by hand from the truth."""

import numpy as np
import pytest
import torch

from tusk.data.datasets.tetrominoes import Tetrominoes
from tusk.detection.masks import pixel_shares
from tusk.detection.pipeline import BatchDetections
from tusk.evaluation.tally import ObjectTally

DATA = Tetrominoes(split="test", count=12)
TRUTHS = [DATA.truth(index) for index in range(12)]
MASKS = torch.from_numpy(np.stack([truth.mask for truth in TRUTHS])).long()
SHAPES = np.stack([truth.attributes["shape"].values for truth in TRUTHS])
COLORS = np.stack([truth.attributes["color"].values for truth in TRUTHS])
TYPES = torch.from_numpy(SHAPES * 6 + COLORS)  # one type for every combination
POINTS = torch.from_numpy(np.stack([truth.points for truth in TRUTHS]))
# The mean of a piece's pixels may lie beside it; the first of its pixels does not.
INSIDE = torch.tensor([[(mask == piece).nonzero()[0].flip(0).tolist() for piece in (1, 2, 3)] for mask in MASKS])


def detections(labels=MASKS, types=TYPES, xy=INSIDE, kept=None, layers=True):
    """The detections of a network whose layers are these labels."""
    alpha = torch.stack([labels == keypoint for keypoint in range(1, 4)], 1).float()[:, :, None]
    images, nothing = len(labels), torch.zeros(())
    return BatchDetections(
        xy=xy.float(),
        score=torch.ones(images, 3),
        gain=torch.ones(images, 3),
        found=torch.ones(images, 3, dtype=torch.bool),
        kept=torch.ones(images, 3, dtype=torch.bool) if kept is None else kept,
        full=torch.zeros(images, dtype=torch.bool),
        type=types,
        probability=torch.ones(images, 3),
        descriptors=nothing,
        score_map=nothing,
        reconstruction=nothing,
        layer_rgb=None,
        layer_alpha=None,
        shares=pixel_shares(alpha) if layers else None,
    )


def tally(found, truths=TRUTHS):
    gathered = ObjectTally(114)
    gathered.add(found, truths)
    return gathered


def accuracies(gathered):
    figures = gathered.attributes()
    return [one.many_to_one for one in figures.attributes], figures.together.one_to_one, figures.matched


def test_perfect():
    gathered = tally(detections())
    masks = gathered.segmentation()
    assert (masks.ari_foreground, masks.ari, masks.mean_iou, masks.objects) == (1, 1, 1, 36)
    assert accuracies(gathered) == ([1, 1], 1, 1)
    assert gathered.true_counts.tolist() == [3] * 12


def test_keypoints_in_any_order_and_types_by_any_name():
    names = torch.randperm(114, generator=torch.Generator().manual_seed(0))
    order = [2, 0, 1]  # keypoint k is on object order[k]
    labels = torch.tensor([0, 2, 3, 1])[MASKS]
    gathered = tally(detections(labels, names[TYPES[:, order]], INSIDE[:, order]))
    assert gathered.segmentation().ari == 1 and accuracies(gathered) == ([1, 1], 1, 1)


def test_types_that_go_with_the_wrong_keypoint_are_wrong():
    types = torch.from_numpy(COLORS)
    assert accuracies(tally(detections(types=types)))[0][1] == 1
    gathered = tally(detections(types=types[:, [1, 2, 0]]))
    assert gathered.segmentation().ari == 1 and accuracies(gathered)[0][1] < 0.6


def test_nothing_but_background():
    gathered = tally(detections(torch.zeros_like(MASKS)))
    assert gathered.segmentation().mean_iou == 0 and accuracies(gathered) == ([0, 0], 0, 0)


def test_a_layer_of_a_keypoint_that_is_no_detection_matches_nothing():
    kept = torch.tensor([[True, True, False]]).expand(12, 3)
    assert accuracies(tally(detections(kept=kept)))[2] == pytest.approx(2 / 3)


def test_points_alone():
    gathered = tally(detections(layers=False))
    assert gathered.segmentation() is None and accuracies(gathered) == ([1, 1], 1, 1)
    assert accuracies(tally(detections(layers=False, xy=INSIDE[:, :1].expand(-1, 3, -1))))[2] == pytest.approx(1 / 3)


def test_batches_add_up():
    noisy = torch.where(torch.rand(MASKS.shape, generator=torch.Generator().manual_seed(1)) < 0.3, 1, MASKS)
    whole, parts = tally(detections(noisy)), ObjectTally(114)
    for part in (slice(0, 5), slice(5, 12)):
        parts.add(detections(noisy[part], TYPES[part], INSIDE[part]), TRUTHS[part])
    assert whole.segmentation() == parts.segmentation() and whole.attributes() == parts.attributes()
