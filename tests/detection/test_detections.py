"""The result type: slicing, filtering, single detections, rows, masks."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from tusk.detection.detections import COLUMNS, Detection, Detections
from tusk.detection.draw import type_colours
from tusk.detection.records import record_of
from tusk.errors import UsageError, UserError
from tusk.export.coco import write_coco

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
        "image": "a.png", "instance": 1, "type": 0, "x": 2.0, "y": 3.0, "score": 0.8, "gain": -1.0, "probability": 0.5,
        "size": 1.0,
    }  # fmt: skip
    assert {type(value) for row in rows for value in row.values()} == {str, int, float}


def test_a_table_for_pandas():
    table = example()[1:].to_pandas()
    assert tuple(table.columns) == COLUMNS and len(table) == 3 and table["type"].tolist() == [0, 2, 1]
    assert tuple(example()[[]].to_pandas().columns) == COLUMNS


def test_coco_of_one_picture_is_that_of_the_file(tmp_path):
    found = replace(example(), box_side=1.0)
    coco = tmp_path / "coco.json"
    write_coco(coco, lambda: [record_of(found, 1.0)], 3)
    assert found.to_coco() == json.loads(coco.read_text())
    assert [one["image_id"] for one in found.to_coco(image_id=5)["annotations"]] == [5] * 4
    assert len(found.to_coco(types=9)["categories"]) == 9
    assert example()[[]].to_coco() == {
        "images": [{"id": 1, "file_name": "a.png", "width": 3, "height": 2}], "annotations": [], "categories": []
    }  # fmt: skip


def test_supervision_gets_boxes_masks_and_types():
    found = example()
    theirs = found.to_supervision()
    assert theirs.xyxy[0].tolist() == [1, 0, 3, 1] and theirs.xyxy[3].tolist() == [0, 1, 2, 2]
    assert theirs.class_id.tolist() == [2, 0, 2, 1] and np.array_equal(theirs.mask, found.mask)
    assert theirs.confidence.tolist() == SCORE.tolist() and theirs.data["gain"].tolist() == found.gain.tolist()
    assert len(found[[]].to_supervision()) == 0


@pytest.mark.parametrize("name", ["pandas", "supervision"])
def test_what_is_not_installed_is_said_in_one_sentence(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=f"{name} is not installed; run 'pip install {name}'"):
        getattr(example(), f"to_{name}")()


def test_plots_show_points_and_masks_in_the_colour_of_their_type():
    found = replace(example()[:2], xy=np.array([[0.0, 0.0], [2.0, 1.0]]))
    drawn = found.plot(np.zeros((2, 3, 3), np.uint8))
    assert drawn.size == (48, 32)
    colours = type_colours(3)
    assert drawn.getpixel((8, 8)) == colours[2] and drawn.getpixel((40, 24)) == colours[0]
    with pytest.raises(UsageError, match="it is 9 x 4 pixels, the detections are of 3 x 2"):
        found.plot(np.zeros((4, 9, 3), np.uint8))
