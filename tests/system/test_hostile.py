"""Hundreds of model files and of file names that were made to do harm: no traceback, no hang, no gigabyte."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tusk.config import Config
from tusk.export.csv import read_rows
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, save_model
from tusk.names import as_text, from_cell

HERE = Path(__file__).parent


def run(script, *args):
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), *sys.path]),
    }
    done = subprocess.run([sys.executable, HERE / script, *args], env=environment, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    return done


def test_two_hundred_hostile_model_files(tmp_path):
    facts = json.loads(run("hostile_models.py", tmp_path, "200").stdout)
    assert facts["files"] == 200 and facts["megabytes"] < 1000, facts
    assert facts["slowest"][0] < 10, facts  # seconds of computing
    # The mutations reach every check, and not only the first.
    said = " ".join(facts["said"])
    for words in (
        "safetensors", "checksum", "is not JSON", "too deeply", "is missing", "instead of", "no place", "not finite",
        "is not a number", "no sensible number", "no such setting", "less than or equal",
    ):  # fmt: skip
        assert words in said, words
    assert 0 < facts["used"] < 40, "a few are harmless"


@pytest.fixture(scope="module")
def detected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    settings = {"keypoints": 2, "types": 3, "channels": 4, "width": 4, "levels": 2, "window": 5, "decode": "layers"}
    config = Config.model_validate({"model": settings, "data": {"size": 16}})
    save_model(folder / "model.safetensors", StoredModel(seeded_network(config.model, 0), config))
    done = run("hostile_names.py", folder / "model.safetensors", folder / "place", "200")
    return folder / "place", done


def strict_json(path):
    def refuse(word):
        raise ValueError(word)

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_two_hundred_hostile_file_names(detected):
    place, done = detected
    *printed, facts = done.stdout.splitlines()
    assert json.loads(facts)["code"] == 0 and json.loads(facts)["megabytes"] < 1000, done.stderr
    assert b"Traceback" not in done.stderr and b"\x1b" not in done.stderr
    (source,) = (entry for entry in place.iterdir() if entry.name != "runs")
    (out,) = (place / "runs/detect").iterdir()
    assert b"\n".join(printed) == os.fsencode(out.relative_to(place)), "the path goes out as its own bytes"
    names = {file.relative_to(source).as_posix() for file in source.rglob("*") if file.is_file()}
    assert len(names) == 200

    for table in ("detections.csv", "unreadable.csv", "unwritten.csv"):
        with (out / table).open(encoding="utf-8", newline="") as file:
            head, *rows = list(csv.reader(file, strict=True))
        assert all(len(row) == len(head) for row in rows), table
        cells = [cell for row in rows for cell in row]
        formulas = [cell for cell in cells if cell[:1] in tuple("=+-@\t\r\n")]
        assert all(cell.replace(".", "", 1).lstrip("+-").isdecimal() for cell in formulas), "nothing but numbers"
        if table == "unwritten.csv":
            unwritten = [from_cell(row[0]) for row in rows]
        if table == "unreadable.csv":
            assert rows == []
    assert {row["image"] for row in read_rows(out / "detections.csv")} == names

    coco = strict_json(out / "coco.json")
    files = [image["file_name"] for image in coco["images"]]
    assert sorted(files) == sorted(map(as_text, names)) and [*map(str.encode, files)]
    manifest = strict_json(out / "manifest.json")
    assert manifest["totals"]["pictures"] == 200 and manifest["totals"]["unwritten"] == len(unwritten) > 0
    assert f"could not be written: {len(unwritten)}, see unwritten.csv".encode() in done.stderr
    for kind in ("masks", "overlays"):
        written = [file for file in (out / kind).rglob("*") if file.is_file()]
        assert 200 - len(unwritten) <= len(written) <= 200 and all(file.suffix == ".png" for file in written)
        assert all(Image.open(file).size[0] >= 16 for file in written[::20])
    assert {"meet", "meet.png/inner.png"} & {*unwritten}, "one of the two has no room"
