"""YOLO and Pascal VOC, read back by supervision and datumaro."""

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.export.results import NAMES, PICTURES, SIZE, write_folder
from tusk.export.convert import export_results
from tusk.export.found import read_results
from tusk.names import from_text

ALL = [*NAMES.values(), "type 3"]


@pytest.fixture(params=[False, True], ids=["points", "masks"])
def folder(tmp_path, request):
    write_folder(tmp_path / "found", masks=request.param)
    return tmp_path / "found"


def edges(one):
    left, top, width, height = one.box
    return [left, top, left + width, top + height]


def test_supervision_reads_yolo_equal(folder, tmp_path):
    from supervision import DetectionDataset

    out = export_results(folder, "yolo", tmp_path / "out", NAMES).folder
    labels = sorted((out / "labels").rglob("*.txt"))
    assert len(labels) == len(PICTURES)
    assert (out / "classes.txt").read_text(encoding="utf-8").splitlines() == ALL
    assert yaml.safe_load((out / "data.yaml").read_text(encoding="utf-8"))["names"] == ALL
    read = {}
    for label in labels:  # supervision looks into one folder
        picture = out / "images" / label.relative_to(out / "labels").with_suffix(".png")
        picture = picture.with_name(label.name.removesuffix(".txt") + ".png")
        picture.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", SIZE).save(picture)
        dataset = DetectionDataset.from_yolo(str(picture.parent), str(label.parent), str(out / "data.yaml"))
        assert dataset.classes == ALL
        read[label.relative_to(out / "labels").as_posix()] = next(
            one for path, _, one in dataset if path == str(picture)
        )
    pictures = read_results(folder).pictures
    for place, name in [("a.png.txt", "a.png"), ("a.jpg.txt", "a.jpg"), ("none.txt", "none.png"),
                        ("sub/Größe 图.txt", PICTURES[2]), ("stack.txt", PICTURES[5])]:  # fmt: skip
        picture = next(one for one in pictures if one.image == name)
        theirs = read[place]
        assert theirs.class_id.tolist() == [one.type for one in picture.found]
        assert theirs.xyxy.reshape(-1).tolist() == pytest.approx(
            [edge for one in picture.found for edge in edges(one)], abs=1e-3
        )


def test_datumaro_reads_voc_equal(folder, tmp_path):
    from datumaro.components.dataset import Dataset

    out = export_results(folder, "voc", tmp_path / "out", NAMES).folder
    dataset = Dataset.import_from(str(out), "voc")
    label = next(iter(dataset.categories().values()))
    assert [one.name for one in label.items] == ALL
    items = list(dataset)
    assert len(items) == len(PICTURES)
    for item, picture in zip(items, read_results(folder).pictures, strict=True):
        assert len(item.annotations) == len(picture.found)
        for theirs, one in zip(item.annotations, picture.found, strict=True):
            assert theirs.label == one.type
            read = {name: float(theirs.attributes[name]) for name in ("x", "y", "score", "gain", "size", "instance")}
            assert read == {name: getattr(one, name) for name in read}
            # Pixels are counted from 1, and the last one is inside.
            left, top, right, bottom = edges(one)
            wanted = [np.floor(left) + 1, np.floor(top) + 1, np.ceil(right), np.ceil(bottom)]
            assert theirs.points == wanted


def test_names_of_pictures_in_voc_come_back(folder, tmp_path):
    from xml.etree import ElementTree

    out = export_results(folder, "voc", tmp_path / "out").folder
    places = (out / "ImageSets/Main/default.txt").read_text(encoding="utf-8").splitlines()
    read = [ElementTree.parse(out / "Annotations" / f"{place}.xml").findtext("filename") for place in places]
    assert [from_text(name) for name in read] == PICTURES
