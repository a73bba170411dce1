"""Edits on detections: types, hidden ones, masks, corrections of one picture alone."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.naming.made import detections, naming
from tusk.detection.pipeline import BatchDetections
from tusk.naming import apply_naming, apply_to_batch
from tusk.naming.edits import Added, Correct, Hide, Merge, PictureKey, Removed, Rename
from tusk.naming.types import edited

SHA = "a" * 64
KEY = PictureKey(name="a.png", sha256=SHA)


def after(*edits):
    now = naming()
    for edit in edits:
        now = edited(now, edit)
    return now


def test_merged_and_hidden_types():
    masks = np.zeros((80, 100), np.uint16)
    masks[0, :4] = [1, 2, 3, 4]
    found = detections([0, 1, 2, 3], mask_map=masks)
    named = apply_naming(found, after(Merge(into=0, other=1), Hide(type=2), Rename(type=0, name="cell")))
    assert named.type.tolist() == [0, 0, 3]
    assert named.mask_map[0, :4].tolist() == [1, 2, 0, 4]
    assert [row["name"] for row in named.rows()] == ["cell", "cell", "type 3"]
    assert named.to_coco()["categories"][0]["name"] == "cell"
    assert named.to_pandas()["name"].tolist() == ["cell", "cell", "type 3"]
    assert found.type.tolist() == [0, 1, 2, 3] and found.mask_map[0, 2] == 3  # what was given stays as it was


def test_corrections_hold_for_their_own_picture(tmp_path):
    picture = tmp_path / "other name.png"
    picture.write_bytes(b"bytes")
    key = PictureKey(name="a.png", sha256=hashlib.sha256(b"bytes").hexdigest())
    now = after(Correct(picture=key, removed=(Removed(x=18.4, y=20),), added=(Added(x=50, y=60, type=1),)))
    found = detections([0, 1, 2])
    assert len(apply_naming(found, now)) == 3
    named = apply_naming(found, now, picture)
    assert named.xy.tolist() == [[10, 20], [26, 20], [50, 60]]
    assert named.type.tolist() == [0, 2, 1] and named.instance.tolist() == [0, 2, 3]
    assert named.score[-1] == 1 and named.gain[-1] == 0
    assert len(apply_naming(found, now, picture, frame=1)) == 3
    picture.write_bytes(b"changed")
    assert len(apply_naming(found, now, picture)) == 3


def test_what_was_added_can_be_removed_and_merged():
    added = Correct(picture=KEY, added=(Added(x=11, y=20, type=1), Added(x=70, y=70, type=1)))
    removed = Correct(picture=KEY, removed=(Removed(x=11, y=20, added=True),))
    named = apply_naming(detections([0]), after(added, removed, Merge(into=2, other=1)), sha256=SHA)
    assert named.xy.tolist() == [[10, 20], [70, 70]]
    assert named.type.tolist() == [0, 2]


def test_a_correction_far_from_every_point_removes_none():
    now = after(Correct(picture=KEY, removed=(Removed(x=90, y=70),)))
    assert len(apply_naming(detections([0, 1]), now, sha256=SHA)) == 2
    assert len(apply_naming(detections([]), now, sha256=SHA)) == 0


@pytest.mark.parametrize("compact", [False, True])
def test_batches_for_evaluation_and_pages(compact):
    types = torch.tensor([[0, 1, 2, 3]])
    nothing = torch.zeros(1, 4)
    kept = torch.tensor([[True, True, True, False]])
    batch = BatchDetections(
        xy=torch.zeros(1, 4, 2), score=nothing, gain=nothing, found=kept, kept=kept, full=kept.all(-1), type=types,
        probability=nothing, descriptors=torch.eye(4)[None], score_map=nothing, reconstruction=nothing, layer_rgb=None,
        layer_alpha=None, shares=torch.full((1, 5, 2, 2), 0.2),
    )  # fmt: skip
    named = apply_to_batch(batch, after(Merge(into=3, other=0), Hide(type=1)), compact=compact)
    assert named.kept.tolist() == [[True, False, True, False]]
    assert named.type[0, [0, 2]].tolist() == ([1, 0] if compact else [3, 2])
    assert named.shares[0, :, 0, 0].tolist() == pytest.approx([0.4, 0.2, 0, 0.2, 0.2])
    assert replace(named, shares=None).labels() is None
