"""Keypoints on things, against a slow reading of the truth."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.report.subjects import Squares, images, subject
from tusk.report.label_tables import label_tables
from tusk.report.predictions import predict


def placed(known, xy, labels, found=None):
    """The predictions of a network that puts these keypoints (N, K, 2) there."""
    predictions = predict(subject().network, images(known, len(xy)).sample, 0)
    labels = torch.as_tensor(labels)
    found = torch.ones_like(labels, dtype=torch.bool) if found is None else found
    return replace(predictions, xy=torch.as_tensor(xy, dtype=torch.float32), label=labels, found=found)


@pytest.mark.parametrize("known", ["class", "attributes"])
def test_keypoints_on_the_things_find_them_all(known):
    squares = Squares(known, 30)
    centres = np.stack([squares.truth(index).points for index in range(30)])
    kinds = np.stack([squares.drawn(index)[1] for index in range(30)])
    if known == "attributes":  # where squares cover one another, the mask has the upper one
        visible = [
            [squares.truth(i).mask[round(y), round(x)] == n + 1 for n, (x, y) in enumerate(centres[i])]
            for i in range(30)
        ]
        expected = int(np.sum(visible))
    else:
        expected = 90
    (table,) = label_tables(placed(known, centres, kinds * 2 + 1), 4, 7)
    assert table.things == 90 and table.found >= 0.9 * expected
    assert table.right == table.found and table.class_of_type[1] == 0 and table.class_of_type[3] == 1
    assert table.class_of_type[0] == -1 and table.class_of_type[2] == -1


def test_confusion_is_that_of_a_slow_count():
    rng = np.random.default_rng(0)
    squares = Squares("attributes", 25)
    xy, labels = rng.uniform(0, 31, (25, 5, 2)), rng.integers(0, 4, (25, 5))
    found = torch.as_tensor(rng.random((25, 5)) < 0.8)
    (table,) = label_tables(placed("attributes", xy, labels, found), 4, 7)
    slow, things = np.zeros((4, 3), int), set()
    for i in range(25):
        truth = squares.truth(i)
        for k in range(5):
            if not found[i, k]:
                continue
            # The nearest pixel of any thing, no further off than a quarter of the window of 7.
            best, thing = 7 / 4, -1
            for row in range(32):
                for column in range(32):
                    apart = np.hypot(xy[i, k, 0] - column, xy[i, k, 1] - row)
                    if truth.mask[row, column] and apart <= best:
                        best, thing = apart, int(truth.mask[row, column]) - 1
            kind = 2 if thing < 0 else int(truth.attributes["color"].values[thing])
            slow[labels[i, k], kind] += 1
            if thing >= 0:
                things.add((i, thing))
    assert np.array_equal(table.confusion, slow) and table.found == len(things)
    assert table.title == "color" and table.names == ("red", "blue")


def test_far_from_everything_is_on_nothing_and_hidden_points_are_passed_over():
    predictions = placed("class", np.full((6, 2, 2), 500.0), np.zeros((6, 2), int))
    (table,) = label_tables(predictions, 4, 7)
    assert table.found == table.right == 0 and table.confusion[0].tolist() == [0, 0, 12]
    truths = tuple(replace(truth, points=truth.points * np.nan) for truth in predictions.sample.truths)
    (table,) = label_tables(replace(predictions, sample=replace(predictions.sample, truths=truths)), 4, 7)
    assert table.found == 0


def test_without_truth_nothing_is_judged():
    assert label_tables(predict(subject().network, images("nothing").sample, 0), 4, 7) == ()
