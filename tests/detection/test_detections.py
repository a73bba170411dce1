"""The result type: slicing, filtering, single detections, rows, masks."""

import numpy as np

from tusk.detection.detections import COLUMNS, Detection, Detections

SCORE = np.array([0.9, 0.8, 0.5, 0.1])
MASKS = np.array([[0, 1, 1], [4, 4, 2]], np.uint16)


def example():
    return Detections(
        source="a.png",
        width=3,
        height=2,
        xy=np.arange(8.0).reshape(4, 2),
        type=np.array([2, 0, 2, 1]),
        score=SCORE,
        gain=np.array([3.0, -1.0, 5.0, 0.0]),
        probability=np.full(4, 0.5),
        descriptor=np.eye(4),
        instance=np.array([0, 1, 2, 3]),
        mask_map=MASKS,
    )


def test_slices_masks_and_lists():
    found = example()
    assert len(found) == 4
    for part, expected in [
        (found[1:3], [1, 2]),
        (found[found.score > 0.4], [0, 1, 2]),
        (found[[3, 0]], [3, 0]),
        (found[[]], []),
        (found[::-1], [3, 2, 1, 0]),
    ]:
        assert part.instance.tolist() == expected
        assert part.score.tolist() == SCORE[expected].tolist()
        assert part.xy.shape == (len(expected), 2) and part.descriptor.shape == (len(expected), 4)
        assert part.mask.shape == (len(expected), 2, 3)


def test_filter():
    found = example()
    assert found.filter().instance.tolist() == [0, 1, 2, 3]
    assert found.filter(min_score=0.5).instance.tolist() == [0, 1, 2]
    assert found.filter(min_gain=0).instance.tolist() == [0, 2, 3]
    assert found.filter(min_score=0.2, min_gain=0, types=[2]).instance.tolist() == [0, 2]
    assert len(found.filter(types=[])) == 0


def test_single_detections_and_their_masks():
    found = example()
    singles = list(found)
    assert len(singles) == 4 and all(isinstance(one, Detection) for one in singles)
    assert (found[-1].x, found[-1].y, found[-1].type) == (6.0, 7.0, 1)
    assert found[np.int64(1)].score == 0.8
    for one, mask in zip(singles, found.mask, strict=True):
        assert np.array_equal(one.mask, mask) and np.array_equal(mask, one.instance + 1 == MASKS)
    assert found[2:].mask.sum((1, 2)).tolist() == [0, 2]  # numbers stay with their things


def test_rows_are_a_table():
    rows = example()[1:].rows()
    assert all(tuple(row) == COLUMNS for row in rows)
    assert rows[0] == {
        "image": "a.png", "instance": 1, "type": 0, "x": 2.0, "y": 3.0, "score": 0.8, "gain": -1.0, "probability": 0.5
    }  # fmt: skip
    assert {type(value) for row in rows for value in row.values()} == {str, int, float}
