"""CVAT and Label Studio: what people correct, read back by datumaro, by a strict reader of the format, and by Label
Studio's own code where that is installed (it brings another build of OpenCV than datumaro does)."""

import json
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.export.results import NAMES, PICTURES, SIZE, write_folder
from tusk.export.convert import export_results
from tusk.export.found import mask_of, read_results
from tusk.names import from_text

ALL = [*NAMES.values(), "type 3"]


@pytest.fixture(params=[False, True], ids=["points", "masks"])
def folder(tmp_path, request):
    write_folder(tmp_path / "found", masks=request.param)
    return tmp_path / "found"


def test_datumaro_reads_cvat_equal(folder, tmp_path):
    from datumaro.components.dataset import Dataset

    path = export_results(folder, "cvat", tmp_path / "out", NAMES).file
    text = path.read_text(encoding="utf-8")
    assert text.count('name="a.jpg"') == 1
    path.write_text(text.replace('name="a.jpg"', 'name="b.jpg"'))  # it tells pictures apart without their endings
    dataset = Dataset.import_from(str(path), "cvat")
    assert [one.name for one in next(iter(dataset.categories().values())).items] == ALL
    items = sorted(dataset, key=lambda item: item.attributes["frame"])
    assert len(items) == len(PICTURES)
    for item, picture in zip(items, read_results(folder).pictures, strict=True):
        boxes = [one for one in item.annotations if one.type.name == "bbox"]
        points = [one for one in item.annotations if one.type.name == "points"]
        assert len(boxes) == len(points) == len(picture.found)
        for box, point, one in zip(boxes, points, picture.found, strict=True):
            assert box.label == point.label == one.type and box.group == point.group > 0
            assert point.points == pytest.approx([one.x + 0.5, one.y + 0.5], abs=0.006)
            assert [box.x, box.y, box.w, box.h] == pytest.approx(one.box, abs=0.006)
            for name in ("score", "gain", "probability", "size", "instance"):
                assert float(box.attributes[name]) == float(point.attributes[name]) == getattr(one, name)


def test_cvat_masks_and_names_of_pictures(folder, tmp_path):
    root = ElementTree.parse(export_results(folder, "cvat", tmp_path / "out", NAMES).file).getroot()
    assert root.findtext("version") == "1.1"
    images = root.findall("image")
    assert [from_text(image.get("name")) for image in images] == PICTURES
    for image, picture in zip(images, read_results(folder).pictures, strict=True):
        assert (int(image.get("width")), int(image.get("height"))) == SIZE
        masks = image.findall("mask")
        wanted = [mask for one in picture.found if (mask := mask_of(picture, one)) is not None]
        assert len(masks) == len(wanted)
        for element, mask in zip(masks, wanted, strict=True):
            left, top, width, height = (int(element.get(name)) for name in ("left", "top", "width", "height"))
            runs = [int(run) for run in element.get("rle").split(",")]
            read = np.zeros_like(mask)
            inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(height, width)
            read[top : top + height, left : left + width] = inside
            assert np.array_equal(read, mask)
            assert element.get("label") in ALL and int(element.get("group_id")) > 0


def unpack_brush(values):
    """Label Studio's packed runs -> the bytes of the picture, by the description of the format alone."""
    bits = "".join(f"{value:08b}" for value in values)
    place = 0

    def take(count):
        nonlocal place
        place += count
        return int(bits[place - count : place], 2)

    number, size = take(32), take(5) + 1
    lengths = [take(4) + 1 for _ in range(4)]
    out = []
    while len(out) < number:
        is_run = take(1)
        count = 1 + take(lengths[take(2)])
        out += [take(size)] * count if is_run else [take(size) for _ in range(count)]
    assert len(out) == number and "1" not in bits[place:] and len(bits) - place < 8
    return np.array(out, np.uint8)


def test_label_studio_tasks_are_strictly_as_it_wants_them(folder, tmp_path):
    done = export_results(folder, "label-studio", tmp_path / "out", NAMES)
    tasks = json.loads(done.file.read_text(encoding="utf-8"))
    view = ElementTree.parse(done.folder / "interface.xml").getroot()
    tools = {one.get("name"): one for one in view if one.tag != "Image"}
    assert [one.get("name") for one in view.findall("Image")] == ["image"]
    assert {name: one.tag.lower() for name, one in tools.items()} == {
        "point": "keypointlabels", "box": "rectanglelabels", "mask": "brushlabels"
    }  # fmt: skip
    for one in tools.values():
        assert [label.get("value") for label in one] == ALL and one.get("toName") == "image"
    for task, picture in zip(tasks, read_results(folder).pictures, strict=True):
        path = task["data"]["image"].removeprefix("/data/local-files/?d=")
        assert unquote_to_bytes(path) == picture.image.encode("utf-8", "surrogateescape")
        (prediction,) = task["predictions"]
        results = prediction["result"]
        assert len({one["id"] for one in results}) == len(results)
        for result in results:
            labels = tools[result["from_name"]].tag.lower()
            assert result["type"] == labels and result["to_name"] == "image" and len(result["value"][labels]) == 1
            assert (result["original_width"], result["original_height"], result["image_rotation"]) == (*SIZE, 0)
            assert all(0 <= result["value"].get(name, 0) <= 100 for name in ("x", "y", "width", "height"))
        by_id = {one["id"]: one for one in results}
        for one in picture.found:
            point, box = by_id[f"point-{one.instance}"], by_id[f"box-{one.instance}"]
            assert box["parentID"] == point["id"] and point["score"] == one.score
            assert point["value"]["keypointlabels"] == [ALL[one.type]]
            scale = np.array(SIZE) / 100
            assert np.allclose(np.array([point["value"]["x"], point["value"]["y"]]) * scale - 0.5, (one.x, one.y))
            read = np.array([box["value"][name] for name in ("x", "y", "width", "height")]) * np.tile(scale, 2)
            assert np.allclose(read, one.box)
            mask = mask_of(picture, one)
            assert (mask is not None) == (f"mask-{one.instance}" in by_id)
            if mask is not None:
                values = unpack_brush(by_id[f"mask-{one.instance}"]["value"]["rle"]).reshape(*mask.shape, 4)
                assert np.array_equal(values, np.repeat(np.uint8(mask)[..., None] * 255, 4, 2))


def test_long_runs_are_cut():
    from tusk.export.formats.label_studio import brush_runs

    mask = np.ones((200, 301), bool)
    mask[0, 5] = False
    assert np.array_equal(unpack_brush(brush_runs(mask)).reshape(200, 301, 4)[..., 0] > 0, mask)


def test_label_studios_own_converter_reads_it_equal(folder, tmp_path):
    converter = pytest.importorskip("label_studio_sdk.converter")
    from label_studio_sdk.converter.brush import decode_rle

    done = export_results(folder, "label-studio", tmp_path / "out", NAMES)
    tasks = json.loads(done.file.read_text(encoding="utf-8"))
    # What a person accepts becomes an annotation, as it is.
    for number, task in enumerate(tasks):
        task.update(id=number, annotations=[{"id": number, **task.pop("predictions")[0]}])
    accepted = tmp_path / "accepted.json"
    accepted.write_text(json.dumps(tasks))
    found = read_results(folder)
    config = (done.folder / "interface.xml").read_text(encoding="utf-8")
    theirs = converter.Converter(config=config, project_dir=str(tmp_path))
    theirs.convert_to_json_min(str(accepted), str(tmp_path / "min"), is_dir=False)
    read = json.loads((tmp_path / "min" / "result.json").read_text(encoding="utf-8"))
    assert len(read) == len(PICTURES)
    for task, picture in zip(read, found.pictures, strict=True):
        assert unquote_to_bytes(task["image"]).endswith(picture.image.encode("utf-8", "surrogateescape"))
        points = task.get("point", [])
        assert [one["keypointlabels"] for one in points] == [[ALL[one.type]] for one in picture.found]
        for point, one in zip(points, picture.found, strict=True):
            assert point["x"] * SIZE[0] / 100 - 0.5 == pytest.approx(one.x)
            assert point["y"] * SIZE[1] / 100 - 0.5 == pytest.approx(one.y)
        for brush, one in zip(task.get("mask", []), picture.found, strict=False):
            mask = mask_of(picture, one)
            assert np.array_equal(np.array(decode_rle(brush["rle"])).reshape(*mask.shape, 4)[..., 3] > 0, mask)
