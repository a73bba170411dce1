"""COCO and COCO Keypoints, read back by pycocotools, datumaro and supervision."""

import json

import numpy as np
import pytest
from pycocotools.coco import COCO

from tests.export.results import NAMES, PICTURES, SIZE, TYPES, write_folder
from tusk.export.convert import export_results
from tusk.export.found import mask_of, read_results
from tusk.names import as_text

ALL = [*NAMES.values(), "type 3"]


@pytest.fixture(params=[False, True], ids=["points", "masks"])
def folder(tmp_path, request):
    write_folder(tmp_path / "found", masks=request.param)
    return tmp_path / "found"


@pytest.mark.parametrize("to", ["coco", "coco-keypoints"])
def test_pycocotools_reads_it_equal(folder, tmp_path, to, capsys):
    done = export_results(folder, to, tmp_path / "out", NAMES)
    coco = COCO(str(done.file))
    capsys.readouterr()
    assert [one["name"] for one in coco.loadCats(coco.getCatIds())] == ALL
    assert (done.pictures, done.points) == (len(PICTURES), len(coco.anns))
    for number, picture in enumerate(read_results(folder).pictures, 1):
        (image,) = coco.loadImgs(number)
        assert image["file_name"] == as_text(picture.image) and (image["width"], image["height"]) == SIZE
        read = coco.loadAnns(coco.getAnnIds(imgIds=number))
        assert len(read) == len(picture.found)
        for theirs, one in zip(read, picture.found, strict=True):
            assert theirs["category_id"] == one.type + 1 and theirs["bbox"] == list(one.box)
            assert (theirs["score"], theirs["area"], theirs["iscrowd"]) == (one.score, one.area, 0)
            assert theirs.get("keypoints") == ([one.x, one.y, 2] if to == "coco-keypoints" else None)
            mask = mask_of(picture, one)
            drawn = coco.annToMask(theirs).astype(bool)
            if mask is None:
                left, top, width, height = one.box
                assert drawn.sum() == pytest.approx(width * height, abs=width + height + 1)
                assert drawn[int(top) : int(top + height), int(left) : int(left + width)].mean() > 0.8
            else:
                assert np.array_equal(drawn, mask)


def test_every_category_of_keypoints_has_its_skeleton(folder, tmp_path):
    done = export_results(folder, "coco-keypoints", tmp_path / "out")
    categories = json.loads(done.file.read_text(encoding="utf-8"))["categories"]
    assert len(categories) == TYPES
    assert all(one["keypoints"] == ["point"] and one["skeleton"] == [] for one in categories)


@pytest.mark.parametrize("to", ["coco", "coco-keypoints"])
def test_datumaro_reads_it_equal(folder, tmp_path, to):
    from datumaro.components.dataset import Dataset

    # datumaro tells pictures apart by their names without endings.
    path = export_results(folder, to, tmp_path / "out", NAMES).file
    values = json.loads(path.read_text(encoding="utf-8"))
    (second,) = (image for image in values["images"] if image["file_name"] == "a.jpg")
    second["file_name"] = "b.jpg"
    path.write_text(json.dumps(values))
    dataset = Dataset.import_from(str(tmp_path / "out"), "coco")
    items = {item.attributes["id"]: item for item in dataset}
    for number, picture in enumerate(read_results(folder).pictures, 1):
        shapes = items[number].annotations
        kinds = {kind: [one for one in shapes if one.type.name == kind] for kind in ("points", "mask", "polygon")}
        segments = kinds["mask"] + kinds["polygon"]
        assert len(segments) == len(picture.found)
        for theirs, one in zip(segments, picture.found, strict=True):
            assert (theirs.label, theirs.attributes["score"]) == (one.type, one.score)
            mask = mask_of(picture, one)
            if mask is not None:
                assert np.array_equal(theirs.image.astype(bool), mask)
        assert [one.points for one in kinds["points"]] == (
            [[one.x, one.y] for one in picture.found] if to == "coco-keypoints" else []
        )
