"""The table, napari's tables, TrackMate's spots, GeoJSON and FiftyOne's labels, read back by pandas, shapely, or a
strict reader of the format where its own program cannot be had without a server or a display."""

import csv
import json
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest
import shapely
from PIL import Image

from tests.export.results import NAMES, PICTURES, SIZE, write_folder
from tusk.export.convert import export_results
from tusk.export.found import mask_of, read_results
from tusk.names import as_text, from_cell, from_text

ALL = [*NAMES.values(), "type 3"]
NUMBERS = ("score", "gain", "probability", "size")


@pytest.fixture(params=[False, True], ids=["points", "masks"])
def folder(tmp_path, request):
    write_folder(tmp_path / "found", masks=request.param)
    return tmp_path / "found"


def points_of(folder):
    return [(picture, one) for picture in read_results(folder).pictures for one in picture.found]


def test_pandas_reads_the_table_equal(folder, tmp_path):
    table = pandas.read_csv(export_results(folder, "csv", tmp_path / "out", NAMES).file, keep_default_na=False)
    wanted = points_of(folder)
    assert len(table) == len(wanted)
    for row, (picture, one) in zip(table.to_dict("records"), wanted, strict=True):
        assert from_cell(row["image"]) == picture.image and from_cell(row["name"]) == ALL[one.type]
        assert [row[name] for name in ("x", "y", *NUMBERS)] == [getattr(one, name) for name in ("x", "y", *NUMBERS)]
        assert (row["left"], row["top"], row["width"], row["height"]) == one.box
        assert (row["image_width"], row["image_height"]) == SIZE


def test_no_cell_of_a_table_is_a_formula(folder, tmp_path):
    with export_results(folder, "csv", tmp_path / "out", NAMES).file.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert row["image"][0] not in "=+-@" and row["name"][0] not in "=+-@"


def test_napari_reads_its_tables_equal(folder, tmp_path):
    out = export_results(folder, "napari", tmp_path / "out", NAMES).folder
    with (out / "pictures.csv").open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    assert [from_cell(row["image"]) for row in listed] == PICTURES
    for entry, picture in zip(listed, read_results(folder).pictures, strict=True):
        with (out / entry["table"]).open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        # Its reader: an index, columns 'axis-N' of numbers, and properties of as many values.
        assert head[:3] == ["index", "axis-0", "axis-1"] and [int(row[0]) for row in rows] == list(range(len(rows)))
        read = [dict(zip(head, row, strict=True)) for row in rows]
        assert len(read) == len(picture.found)
        for row, one in zip(read, picture.found, strict=True):
            assert (float(row["axis-0"]), float(row["axis-1"])) == (one.y, one.x)
            assert (int(row["type"]), row["name"]) == (one.type, ALL[one.type])
            assert [float(row[name]) for name in NUMBERS] == [getattr(one, name) for name in NUMBERS]


def test_trackmates_spots_are_strictly_as_it_wants_them(folder, tmp_path):
    root = ElementTree.parse(export_results(folder, "trackmate", tmp_path / "out", NAMES).file).getroot()
    model = root.find("Model")
    assert root.tag == "TrackMate" and root.get("version") and model.get("spatialunits") == "pixel"
    declared = {one.get("feature"): one.attrib for one in model.iterfind("FeatureDeclarations/SpotFeatures/Feature")}
    for one in declared.values():
        assert set(one) == {"feature", "name", "shortname", "dimension", "isint"} and one["isint"] in ("true", "false")
    frames = model.findall("AllSpots/SpotsInFrame")
    assert [int(frame.get("frame")) for frame in frames] == list(range(len(PICTURES)))
    spots = [spot for frame in frames for spot in frame]
    assert int(model.find("AllSpots").get("nspots")) == len(spots)
    assert [int(spot.get("ID")) for spot in spots] == list(range(len(spots)))
    for spot, (picture, one) in zip(spots, points_of(folder), strict=True):
        values = {name: float(spot.get(name)) for name in declared}  # each spot has every feature
        assert (values["POSITION_X"], values["POSITION_Y"], values["QUALITY"]) == (one.x, one.y, one.score)
        assert (values["RADIUS"], values["TUSK_TYPE"], values["TUSK_GAIN"]) == (one.size / 2, one.type, one.gain)
        assert spot.get("name") == ALL[one.type] and PICTURES[int(values["FRAME"])] == picture.image
        mask = mask_of(picture, one)
        assert (mask is not None) == ("ROI_N_POINTS" in spot.attrib)
        if mask is not None:
            outline = np.array(spot.text.split(), float).reshape(-1, 2)
            assert len(outline) == int(spot.get("ROI_N_POINTS"))
            y, x = np.mgrid[: SIZE[1], : SIZE[0]]
            inside = shapely.contains_xy(shapely.Polygon(outline + np.array([one.x, one.y])), x, y)
            assert not (mask & ~inside).sum() > 12 and not (inside & ~mask).sum() > 12  # but for holes and islands
    assert [from_text(one.get("name")) for one in root.iterfind("TuskPictures/Picture")] == PICTURES


def test_shapely_reads_the_outlines_equal(folder, tmp_path):
    out = export_results(folder, "geojson", tmp_path / "out", NAMES).file
    read = [json.loads(path.read_text(encoding="utf-8")) for path in out.rglob("*.geojson")]
    by_name = {from_text(one["image"]["name"]): one for one in read}
    assert set(by_name) == set(PICTURES) and len(read) == len(PICTURES)
    y, x = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
    for picture in read_results(folder).pictures:
        collection = by_name[picture.image]
        assert collection["type"] == "FeatureCollection" and len(collection["features"]) == len(picture.found)
        for feature, one in zip(collection["features"], picture.found, strict=True):
            shape = shapely.geometry.shape(feature["geometry"])
            assert feature["type"] == "Feature" and shape.is_valid
            assert feature["properties"]["classification"]["name"] == ALL[one.type]
            values = feature["properties"]["measurements"]
            assert [values[name] for name in NUMBERS] == [getattr(one, name) for name in NUMBERS]
            assert (values["x"], values["y"]) == pytest.approx((one.x + 0.5, one.y + 0.5))
            mask = mask_of(picture, one)
            if mask is None:
                assert (shape.x, shape.y) == pytest.approx((one.x + 0.5, one.y + 0.5))
            else:
                assert np.array_equal(shapely.contains_xy(shape, x, y), mask)
    assert len({one["id"] for every in read for one in every["features"]}) == len(points_of(folder))


def read_fiftyone(labels, folder):
    """As FiftyOne documents `FiftyOneImageDetectionDataset`, read without anything of the writer: labels are found by a
    picture's path without its ending (or with it); a label is a name, or the place of one in `classes`; a box is left,
    top, width and height in shares of the picture. -> picture -> its (name, box in pixels, confidence, attributes)."""
    content = json.loads(labels.read_text(encoding="utf-8"))
    assert content.keys() <= {"classes", "labels"}
    read = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        key = name if name in content["labels"] else name.rpartition(".")[0]
        found = content["labels"].pop(key)
        with Image.open(path) as image:
            width, height = image.size
        read[name] = []
        for one in found or []:
            label = one["label"] if isinstance(one["label"], str) else content["classes"][one["label"]]
            left, top, wide, high = one["bounding_box"]
            box = (left * width, top * height, wide * width, high * height)
            read[name].append((label, box, one.get("confidence"), one.get("attributes", {})))
    assert content["labels"] == {}  # every one belongs to a picture
    return read


def test_a_reader_of_fiftyones_form_finds_all_beside_the_pictures(folder, tmp_path):
    out = export_results(folder, "fiftyone", tmp_path / "out", NAMES).file
    names = [name for name in PICTURES if name.isprintable()]  # those that any disk can hold
    labels = json.loads(out.read_text(encoding="utf-8"))
    others = {as_text(name).rpartition(".")[0] for name in PICTURES if name not in names}
    out.write_text(json.dumps({**labels, "labels": {k: v for k, v in labels["labels"].items() if k not in others}}))
    for name in names:
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", SIZE).save(path, "PNG")
    read = read_fiftyone(out, tmp_path / "pictures")
    pictures = {picture.image: picture for picture in read_results(folder).pictures}
    assert set(read) == set(names) and len(names) >= 5
    for name, found in read.items():
        assert len(found) == len(pictures[name].found)
        for (label, box, confidence, attributes), one in zip(found, pictures[name].found, strict=True):
            assert (label, confidence) == (ALL[one.type], one.score) and np.allclose(box, one.box)
            assert (attributes["x"], attributes["y"], attributes["instance"]) == (one.x, one.y, one.instance)


def test_fiftyones_labels_are_strictly_as_it_wants_them(folder, tmp_path):
    values = json.loads(export_results(folder, "fiftyone", tmp_path / "out", NAMES).file.read_text(encoding="utf-8"))
    assert set(values) == {"classes", "labels"} and values["classes"] == ALL
    # By path without ending; where two pictures share that, with it.
    keys = ["a.png", "a.jpg", "sub/Größe 图", *(as_text(name).rpartition(".")[0] for name in PICTURES[3:])]
    assert list(values["labels"]) == keys
    for key, picture in zip(keys, read_results(folder).pictures, strict=True):
        for theirs, one in zip(values["labels"][key], picture.found, strict=True):
            assert set(theirs) == {"label", "bounding_box", "confidence", "attributes"}
            assert (theirs["label"], theirs["confidence"]) == (ALL[one.type], one.score)
            assert np.allclose(np.array(theirs["bounding_box"]) * np.tile(SIZE, 2), one.box)
            assert all(0 <= edge <= 1 for edge in theirs["bounding_box"])
            read = {name: theirs["attributes"][name] for name in ("x", "y", "gain", "size", "instance", "type")}
            assert read == {name: getattr(one, name) for name in read}
