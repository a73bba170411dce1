"""What programs and the page ask for, without a browser."""

import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

import tusk
from tests.serve.running import make_bench, running
from tusk.model.storage import load_model
from tusk.naming import NamesFile, open_names
from tusk.weights import shipped_models


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    digits = tusk.datasets.open("digits", split="test", count=4)
    for number in range(4):
        Image.fromarray(digits.image(number)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def client(place, tmp_path_factory):
    with running(make_bench(tmp_path_factory.mktemp("names"), place)) as client:
        yield client


@pytest.fixture(autouse=True)
def no_names(client):
    yield
    while client.bench.names.naming().edits:
        client.bench.names.undo()


def looked_at(client):
    return [client.get(f"/api/pictures/{number}/points")[1] for number in range(4)]


def test_detect_gives_what_tusk_detect_gives(client, place):
    status, found = client.send("/api/detect", (place / "1.png").read_bytes(), name="1.png")
    expected = tusk.load("mnist-hard").detect(place / "1.png")
    assert status == 200 and len(found["found"]) == len(expected) == 9
    assert [one["type"] for one in found["found"]] == expected.type.tolist()
    np.testing.assert_allclose([[one["x"], one["y"]] for one in found["found"]], expected.xy, atol=0.006)
    assert found["found"][0]["name"].startswith("type ")
    assert len(client.send("/api/detect?keypoints=3", (place / "1.png").read_bytes())[1]["found"]) <= 3
    assert client.send("/api/detect?min_gain=1e8", (place / "1.png").read_bytes())[1]["found"] == []


def test_openapi_names_every_address(client):
    paths = client.get("/openapi.json")[1]["paths"]
    assert {"/api/detect", "/api/types", "/api/names/set", "/api/names/teach", "/api/health"} <= paths.keys()
    assert all("summary" in about for methods in paths.values() for about in methods.values())
    assert b"openapi.json" in client.raw("GET", "/docs")[2]


def test_names_hold_for_all_that_is_given(client, place):
    pictures = looked_at(client)
    first = pictures[0]["points"][0]["type"]
    assert client.post("/api/names/set", {"type": first, "name": "<b>first</b>"})[0] == 200
    other = next(number for number in range(10) if number != first)
    status, types = client.post("/api/names/merge", {"into": first, "other": other})
    assert status == 200 and len(types["types"]) == 9
    by_number = {one["number"]: one for one in types["types"]}
    expected = sum(one["type"] in (first, other) for picture in pictures for one in picture["points"])
    assert by_number[first]["count"] == expected and by_number[first]["merged"] == [other]
    found = client.send("/api/detect", (place / "0.png").read_bytes())[1]["found"]
    assert "<b>first</b>" in {one["name"] for one in found}
    assert client.post("/api/names/set", {"type": 9 if first != 9 else 8, "name": "<B>first</B>"})[0] == 422
    hidden = client.post("/api/names/hide", {"type": first})[1]
    assert next(one for one in hidden["types"] if one["number"] == first)["count"] == 0
    assert all(one["type"] != first for one in client.get("/api/pictures/0/points")[1]["points"])
    for _ in range(3):
        assert client.post("/api/names/undo")[0] == 200
    assert client.get("/api/pictures/0/points")[1]["points"] == pictures[0]["points"]
    assert client.post("/api/names/undo")[0] == 422


def test_split_teach_and_correct(client):
    pictures = looked_at(client)
    counts = {one["number"]: one["count"] for one in client.get("/api/types")[1]["types"]}
    most = max(counts, key=counts.get)
    split = {one["number"]: one["count"] for one in client.post("/api/names/split", {"type": most})[1]["types"]}
    assert split[most] + split[10] == counts[most] and split[most] >= split[10] > 0
    point = pictures[2]["points"][3]
    body = {"points": [{"picture": 2, "instance": point["instance"]}], "name": "odd"}
    taught = client.post("/api/names/teach", body)[1]
    new = next(one for one in taught["types"] if one["name"] == "odd")
    now = client.get("/api/pictures/2/points")[1]["points"]
    assert next(one for one in now if one["instance"] == point["instance"])["type"] == new["number"]
    correction = {"picture": 2, "removed": [point["instance"]], "added": [{"x": 5, "y": 6, "type": 0}]}
    assert client.post("/api/names/correct", correction)[0] == 200
    now = client.get("/api/pictures/2/points")[1]["points"]
    assert len(now) == 9 and now[-1]["added"] and (now[-1]["x"], now[-1]["y"]) == (5, 6)
    assert point["instance"] not in [one["instance"] for one in now]
    outside = {"picture": 2, "added": [{"x": 500, "y": 6, "type": 0}]}
    assert client.post("/api/names/correct", outside)[0] == 422


def test_all_else_is_sorted_into_what_is_named(client):
    looked_at(client)
    status, answer = client.post("/api/names/sort")
    assert status == 422 and "two are needed" in answer["error"]
    for number in (1, 3):
        client.post("/api/names/set", {"type": number, "name": f"digit of {number}"})
    before = {one["number"]: one["count"] for one in client.get("/api/types")[1]["types"]}
    status, answer = client.post("/api/names/sort")
    assert status == 200 and {one["number"] for one in answer["types"]} == {1, 3}
    assert sum(one["count"] for one in answer["types"]) == sum(before.values())
    assert all(one["count"] >= before[one["number"]] for one in answer["types"])


def test_what_is_downloaded_is_what_is_shown(client):
    looked_at(client)
    client.post("/api/names/set", {"type": 0, "name": "=evil()"})
    status, headers, content = client.raw("GET", "/api/download/tables?keypoints=5")
    assert status == 200 and headers["content-disposition"] == 'attachment; filename="tusk-tables.zip"'
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert sorted(archive.namelist()) == ["counts.csv", "detections.csv"]
        rows = archive.read("detections.csv").decode().splitlines()
        assert len(rows) == 1 + 4 * 5 and rows[0].endswith(",name")
        assert not any(",=evil" in row for row in rows)
        assert archive.read("counts.csv").decode().splitlines()[0].startswith("image,total,'=evil(),type_1")
    status, _, content = client.raw("GET", "/api/download/coco")
    coco = json.loads(content)
    assert len(coco["annotations"]) == 36 and coco["categories"][0]["name"] == "=evil()"
    assert client.raw("GET", "/api/download/exe")[0] == 404


def test_pictures_crops_and_prototypes_can_be_seen(client):
    looked_at(client)
    types = client.get("/api/types")[1]["types"]
    for path in ("/api/pictures/0/image?longest=64", types[0]["prototype"], types[0]["crops"][0]):
        status, headers, content = client.raw("GET", path)
        assert status == 200 and headers["content-type"] == "image/png"
        assert min(Image.open(io.BytesIO(content)).size) >= 48
    assert client.raw("GET", "/api/pictures/0/mask.png")[0] == 404  # this model has no layers
    assert client.raw("DELETE", "/api/pictures/0")[0] == 403


def test_a_dropped_picture_comes_and_goes(client, place):
    status, picture = client.send("/api/pictures", (place / "3.png").read_bytes(), name="new.png")
    assert status == 200 and picture["name"] == "new.png"
    same = client.get(f"/api/pictures/{picture['number']}/points")[1]["points"]
    assert same == client.get("/api/pictures/3/points")[1]["points"]
    assert client.raw("DELETE", f"/api/pictures/{picture['number']}")[0] == 200
    assert client.raw("GET", f"/api/pictures/{picture['number']}/image")[0] == 404


def test_masks_of_a_model_with_layers(tmp_path):
    scene = tusk.datasets.open("tetrominoes", split="test", count=1).image(0)
    Image.fromarray(scene).save(tmp_path / "a.png")
    with running(make_bench(tmp_path, tmp_path, load_model(shipped_models()["tetrominoes"]))) as client:
        points = client.get("/api/pictures/0/points")[1]
        assert points["masks"]
        mask = np.array(Image.open(io.BytesIO(client.raw("GET", "/api/pictures/0/mask.png")[2])))
        instances = {one["instance"] + 1 for one in points["points"]}
        assert set(np.unique(mask[..., 0])) - {0} <= instances and mask[..., 0].any()
        annotations = json.loads(client.raw("GET", "/api/download/coco")[2])["annotations"]
        assert any("segmentation" in one for one in annotations)


def test_names_on_the_disk_are_read_again_when_others_change_them(client):
    other = NamesFile(client.bench.names.path, client.bench.model)
    assert client.get("/api/types")[1]["undo"] is None
    from tusk.naming.edits import Rename

    other.edit(lambda _: Rename(type=4, name="elsewhere"))
    assert client.get("/api/types")[1]["types"][4]["name"] == "elsewhere"
    assert open_names(client.bench.names.path, client.bench.model).edits


def test_two_dropped_pictures_of_one_name_are_told_apart(client, place):
    content = (place / "3.png").read_bytes()
    names = [client.send("/api/pictures", content, name="new.png")[1] for _ in range(3)]
    assert [one["name"] for one in names] == ["new.png", "new (2).png", "new (3).png"]
    for one in names:
        client.raw("DELETE", f"/api/pictures/{one['number']}")
