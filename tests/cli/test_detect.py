"""`tusk detect` as a user meets it: sources, result files, COCO, pictures, and one sentence for each fault."""

import csv
import io
import json
import os
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from tests.detection.bright import blob
from tusk.cli import main as cli
from tusk.config import Config
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel, load_model, save_model

SETTINGS = {"keypoints": 4, "types": 3, "channels": 6, "width": 8, "levels": 2, "window": 7}
NAMES = ["a 1.png", "a 10.png", "sub/deep.tif", "sub/Größe 图.jpg"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, decode in (("plain", "plain"), ("layers", "layers")):
        config = Config.model_validate({"model": {**SETTINGS, "decode": decode}, "data": {"size": 32}})
        save_model(folder / f"{name}.safetensors", StoredModel(seeded_network(config.model, 1), config))
    return folder


@pytest.fixture
def place(models, tmp_path, monkeypatch):
    """The current folder, with models and pictures in it."""
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    rng = np.random.default_rng(3)
    (tmp_path / "photos" / "sub").mkdir(parents=True)
    for name, size in zip([*NAMES[:2], NAMES[3]], [(40, 60), (64, 64), (100, 50)], strict=True):
        Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)).save(tmp_path / "photos" / name)
    Image.fromarray(blob(80, 45, 30, 20, 4, np.uint16)).save(tmp_path / "photos" / NAMES[2])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tusk(capsys):
    def run(*args):
        code = 0
        try:
            cli.main(["detect", *map(str, args)])
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    return run


def table(folder):
    return list(csv.DictReader(io.StringIO((folder / "detections.csv").read_text(encoding="utf-8"))))


def test_a_folder(place, tusk):
    done = tusk("plain.safetensors", "photos", "--min-gain", "-1000")
    assert done.code == 0, done.err
    assert done.out == "runs/detect/photos\n"
    lines = done.err.splitlines()
    assert lines[0] == "Results go to runs/detect/photos" and lines[-1] == "Results are in runs/detect/photos"
    assert any(line.startswith("Next: tusk detect plain.safetensors photos --overlays") for line in lines)
    folder = place / "runs/detect/photos"
    assert sorted(file.name for file in folder.iterdir()) == [
        "coco.json", "counts.csv", "detections.csv", "manifest.json", "unreadable.csv"
    ]  # fmt: skip
    rows = table(folder)
    assert list(rows[0]) == ["image", "instance", "type", "x", "y", "score", "gain", "probability", "size"]
    assert {float(row["size"]) > 0 for row in rows} == {True}  # of a network that learns none: that of its window
    assert list(dict.fromkeys(row["image"] for row in rows)) == NAMES  # in the order in which people count
    assert len(rows) == 16
    assert (folder / "unreadable.csv").read_text() == "image,why\n"
    assert tusk("plain.safetensors", "photos").out == "runs/detect/photos-2\n"  # never over earlier results


def test_every_kind_of_source(place, tusk, monkeypatch):
    (place / "list.txt").write_text("photos/a 1.png\nphotos/sub/deep.tif\n", encoding="utf-8")
    sources = {"photos/a 1.png": 1, "photos/a*.png": 2, "photos/**/*.*": 4, "list.txt": 2, "-": 2}
    for number, (source, count) in enumerate(sources.items()):
        stream = io.TextIOWrapper(io.BytesIO((place / "list.txt").read_bytes()))
        monkeypatch.setattr(sys, "stdin", stream)
        done = tusk("plain.safetensors", source, "--out", f"out{number}", "--min-gain", "-1000")
        assert done.code == 0, done.err
        assert len({row["image"] for row in table(place / f"out{number}")}) == count


def test_several_sources(place, tusk):
    flags = ("--out", "out", "--min-gain", "-1000")
    done = tusk("plain.safetensors", "photos/a 1.png", *flags, "photos/sub", "photos/a 1.png")
    assert done.code == 0, done.err
    assert list(dict.fromkeys(row["image"] for row in table(place / "out"))) == ["a 1.png", *NAMES[2:]]
    assert tusk("plain.safetensors", "photos/sub", *flags).code == 2, "other results"


def test_own_results_are_never_read(place, tusk):
    for number in (1, 2):
        done = tusk("plain.safetensors", ".", "--overlays", "--out", f"found/{number}", "--min-gain", "-1000")
        assert done.code == 0, done.err
        images = list(dict.fromkeys(row["image"] for row in table(place / f"found/{number}")))
        assert images == [f"photos/{name}" for name in NAMES]
        skipped = "Skipped 1 folder with results of tusk: found/1."
        assert (skipped in done.err.splitlines()) == (number == 2)
    again = tusk("plain.safetensors", ".", "--overlays", "--out", "found/2", "--min-gain", "-1000")
    assert again.code == 0 and "Skipped 2 folders" in again.err, "what is done is not other results"
    for named in ("found/1", "found/1/overlays"):
        done = tusk("plain.safetensors", named, "--out", "more")
        assert done.code == 3 and "only results of tusk" in done.err and not (place / "more").exists()


@pytest.mark.parametrize("suffix", ["tif", "gif"])
def test_every_frame_as_a_picture(place, tusk, suffix):
    rng = np.random.default_rng(5)
    frames = [Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(3)]
    stack = f"photos/stack.{suffix}"
    frames[0].save(place / stack, save_all=True, append_images=frames[1:])
    flags = ("--min-gain", "-1000", "--overlays", "--out")
    first = tusk("plain.safetensors", stack, *flags, "first")
    assert "Ignored 2 frames in 1 multi-page file (--frames all takes each as a picture)." in first.err.splitlines()
    assert {row["image"] for row in table(place / "first")} == {f"stack.{suffix}"}
    assert tusk("plain.safetensors", stack, *flags, "every", "--frames", "all").code == 0
    found = {}
    for row in table(place / "every"):
        found.setdefault(row.pop("image"), []).append(row)
    assert list(found) == [f"stack.{suffix}#{number}" for number in (1, 2, 3)]
    assert [len(rows) for rows in found.values()] == [4, 4, 4]
    assert sorted(file.name for file in (place / "every/overlays").iterdir()) == [f"{name}.png" for name in found]
    if suffix == "tif":  # without loss: each frame by itself gives the same
        for number, frame in enumerate(frames, 1):
            frame.save(place / f"{number}.png")
            assert tusk("plain.safetensors", f"{number}.png", *flags, f"alone{number}").code == 0
            for one, other in zip(table(place / f"alone{number}"), found[f"stack.tif#{number}"], strict=True):
                assert (one["type"], one["instance"]) == (other["type"], other["instance"])
                assert all(abs(float(one[name]) - float(other[name])) < 0.02 for name in ("x", "y", "score"))
    assert tusk("plain.safetensors", stack, *flags, "first", "--frames", "all").code == 2, "other results"


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("kind", ["plain", "layers"])
def test_coco(place, tusk, kind):
    tools = pytest.importorskip("pycocotools.coco")
    assert tusk(f"{kind}.safetensors", "photos", "--out", "out", "--min-gain", "-1000").code == 0
    coco = tools.COCO(str(place / "out/coco.json"))
    assert [image["file_name"] for image in coco.loadImgs(coco.getImgIds())] == NAMES
    assert [(one["name"], one["keypoints"], one["skeleton"]) for one in coco.loadCats(coco.getCatIds())] == [
        (f"type {number}", ["point"], []) for number in range(3)
    ]
    annotations = coco.loadAnns(coco.getAnnIds())
    rows = table(place / "out")
    assert len(annotations) == len(rows) == 16
    masks = 0
    for one, row in zip(annotations, rows, strict=True):
        image = coco.imgs[one["image_id"]]
        x, y, seen = one["keypoints"]
        assert (f"{x:.2f}", f"{y:.2f}", image["file_name"]) == (row["x"], row["y"], row["image"])
        assert one["category_id"] == int(row["type"]) + 1 and one["num_keypoints"] == 1 and seen == 2
        assert 0 <= x <= image["width"] - 1 and 0 <= y <= image["height"] - 1
        left, top, width, height = one["bbox"]
        assert left >= 0 and top >= 0 and width > 0 and height > 0 and one["iscrowd"] == 0 and one["area"] > 0
        assert left + width <= image["width"] + 1e-9 and top + height <= image["height"] + 1e-9
        if "segmentation" in one:
            mask = coco.annToMask(one)
            masks += 1
            assert mask.shape == (image["height"], image["width"]) and mask.sum() == one["area"]
            assert mask[top : top + height, left : left + width].sum() == mask.sum()
        else:
            assert left <= x + 0.5 <= left + width and top <= y + 0.5 <= top + height
    assert (masks > 0) == (kind == "layers")


def test_masks_and_overlays_are_pictures(place, tusk):
    flags = ["--masks", "--overlays", "--out", "out", "--min-gain", "-1000"]
    assert tusk("layers.safetensors", "photos", *flags).code == 0
    sizes = [(60, 40), (64, 64), (80, 45), (50, 100)]
    coco = json.loads((place / "out/coco.json").read_text())
    for number, (name, size) in enumerate(zip(NAMES, sizes, strict=True), 1):
        mask = Image.open(place / "out/masks" / f"{name}.png")
        assert mask.size == size and mask.mode == "L"
        areas = [one["area"] for one in coco["annotations"] if one["image_id"] == number and "segmentation" in one]
        assert sorted(np.unique(np.asarray(mask)[np.asarray(mask) > 0], return_counts=True)[1]) == sorted(areas)
        drawn = Image.open(place / "out/overlays" / f"{name}.png")
        assert drawn.size[0] * size[1] == drawn.size[1] * size[0] and max(drawn.size) >= 400


def test_json_rows_go_to_stdout_alone(place, tusk):
    done = tusk("plain.safetensors", "photos", "--json", "--out", "out", "--keypoints", 2, "--min-gain", "-1000")
    *rows, last = [json.loads(line) for line in done.out.splitlines()]
    for row, cells in zip(rows, table(place / "out"), strict=True):
        assert {name: type(value)(cells[name]) for name, value in row.items()} == row
    assert len(rows) == 8 and all(isinstance(row["x"], float) for row in rows)
    summary = last["summary"]
    assert (summary["pictures"], summary["total"], summary["at_limit"]) == (4, 8, 4)
    assert [summary[f"type_{number}"] for number in range(3)] == [
        sum(row["type"] == number for row in rows) for number in range(3)
    ]
    assert summary["remarks"] and all(remark in done.err.replace("\n", " ") for remark in summary["remarks"])


def test_counts_have_a_row_for_every_picture_that_was_read(place, tusk):
    (place / "photos/broken.png").write_bytes((place / "photos/a 1.png").read_bytes()[:200])
    gains = sorted(float(row["gain"]) for row in _detected(place, tusk, "all", "-1000"))
    rows = _detected(place, tusk, "some", f"{gains[-2]:.4f}")  # so that most pictures have nothing
    counted = list(csv.DictReader((place / "some/counts.csv").open(encoding="utf-8", newline="")))
    assert list(counted[0]) == ["image", "total", "type_0", "type_1", "type_2"]
    assert [row["image"] for row in counted] == NAMES, "what could not be read is no zero"
    for row in counted:
        own = [one["type"] for one in rows if one["image"] == row["image"]]
        assert [int(row["total"]), *(int(row[f"type_{number}"]) for number in range(3))] == [
            len(own), *(own.count(str(number)) for number in range(3))
        ]  # fmt: skip
    assert {row["total"] for row in counted} >= {"0"} and 0 < len(rows) < 4
    assert "broken.png" in (place / "some/unreadable.csv").read_text()


def _detected(place, tusk, out, gain):
    done = tusk("plain.safetensors", "photos", "--out", out, "--min-gain", gain)
    assert done.code == 0, done.err
    found = table(place / out)
    listed = ", ".join(
        f"{count} of type {number}"
        for number in range(3)
        if (count := sum(row["type"] == str(number) for row in found))
    )
    said = done.err.replace("\n", " ")
    assert f"Found {len(found)} thing{'s' if len(found) > 1 else ''} in 4 pictures: {listed}." in said
    empty = len(set(NAMES) - {row["image"] for row in found})
    assert (f"{empty} picture" in said) == (empty > 0)
    return found


def test_pictures_that_used_all_keypoints_are_named(place, tusk):
    """In a picture of 32 pixels across there is room for 64 points at the least; of noise, few are found."""
    said = {}
    for keypoints in (2, 60):
        flags = ("--out", f"at{keypoints}", "--keypoints", keypoints, "--min-gain", "-1000")
        done = tusk("plain.safetensors", "photos", *flags)
        said[keypoints] = done.err.replace("\n", " ")
        assert done.code == 0
    coco = json.loads((place / "at2/coco.json").read_text())
    assert all(image["at_limit"] for image in coco["images"])
    assert "4 of 4 pictures used all 2 keypoints: raise --keypoints if things are missed. No least gain" in said[2]
    assert "used all" not in said[60] and all(int(row["instance"]) < 59 for row in table(place / "at60"))
    gains = sorted(float(row["gain"]) for row in table(place / "at2"))
    done = tusk("plain.safetensors", "photos", "--keypoints", 2, "--out", "gain", "--min-gain", f"{gains[1]:.4f}")
    full = sum(int(row["total"]) == 2 for row in csv.DictReader((place / "gain/counts.csv").open(encoding="utf-8")))
    assert 0 < full < 4
    assert f"{full} of 4 pictures used all 2 keypoints: raise --keypoints" in done.err.replace("\n", " ")


def test_thresholds(place, tusk):
    assert tusk("plain.safetensors", "photos", "--out", "all", "--min-gain", "-1000").code == 0
    assert tusk("plain.safetensors", "photos", "--out", "some", "--min-score", "0.8", "--min-gain", "0.5").code == 0
    kept = [row for row in table(place / "all") if float(row["score"]) >= 0.8 and float(row["gain"]) >= 0.5]
    assert table(place / "some") == kept and len(kept) < 16


def test_without_a_threshold_it_is_the_models_own(place, tusk):
    plain = load_model(place / "plain.safetensors")
    save_model(place / "own.safetensors", replace(plain, provenance={"least_gain": 0.5}))
    done = tusk("own.safetensors", "photos", "--out", "own")
    assert "gain below 0.5 are left out" in done.err and "--min-gain 0 keeps them" in done.err
    assert "left out" not in tusk("own.safetensors", "photos", "--out", "all", "--min-gain", "0").err
    assert "left out" not in tusk("plain.safetensors", "photos", "--out", "none").err
    kept = [row for row in table(place / "all") if float(row["gain"]) >= 0.5]
    assert table(place / "own") == kept
    assert 0 < len(kept) < len(table(place / "all")) == len(table(place / "none"))


def test_detection_settings_over_the_models_own(place, tusk):
    flags = ("photos", "--keypoints", 30, "--min-gain", "-1000", "--out")
    for window in (3, 21):
        assert tusk("plain.safetensors", *flags, f"at{window}", "--detection.window", window).code == 0
    assert len(table(place / "at3")) > len(table(place / "at21"))
    assert json.loads((place / "at3/manifest.json").read_text())["detection"] == {"window": 3}
    assert tusk("plain.safetensors", *flags, "at3", "--detection.window=3").code == 0, "the same settings go on"
    long = tusk("plain.safetensors", *flags, "long", "--detection.min-score", "0.3")
    short = tusk("plain.safetensors", *flags, "short", "--min-score", "0.3")
    assert long.code == short.code == 0 and table(place / "long") == table(place / "short"), long.err
    gain = tusk("plain.safetensors", "photos", "--out", "gain", "--detection.min-gain", "0.5")
    assert gain.code == 0 and all(float(row["gain"]) >= 0.5 for row in table(place / "gain"))


def test_what_cannot_be_read_is_listed_and_does_not_stop_it(place, tusk):
    (place / "photos/broken, really.png").write_bytes((place / "photos/a 1.png").read_bytes()[:200])
    (place / "photos/empty.jpg").touch()
    done = tusk("plain.safetensors", "photos", "--out", "out")
    assert done.code == 0 and "cannot be read: 2" in done.err
    listed = list(csv.DictReader((place / "out/unreadable.csv").open(encoding="utf-8")))
    assert [row["image"] for row in listed] == ["broken, really.png", "empty.jpg"]
    assert listed[1]["why"] == "the file is empty"
    done = tusk("plain.safetensors", "photos/e*.jpg", "--out", "none")
    assert done.code == 3 and "none of its 1 pictures can be read" in done.err.splitlines()[-1]
    assert tusk("plain.safetensors", "photos/e*.jpg", "--out", "none").code == 3  # also when it is asked again


def test_the_same_command_again_changes_nothing_and_resume_finds_the_run(place, tusk):
    assert tusk("plain.safetensors", "photos", "--resume").code == 2  # there is none
    first = tusk("plain.safetensors", "photos")
    before = {file: file.stat().st_mtime_ns for file in (place / "runs/detect/photos").iterdir()}
    again = tusk("plain.safetensors", "photos", "--resume")
    assert again.out == first.out == tusk("plain.safetensors", "photos", "--out", "runs/detect/photos").out
    assert {file: file.stat().st_mtime_ns for file in (place / "runs/detect/photos").iterdir()} == before


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["absent", "photos"], 3, ["model 'absent'", "no such model"]),
        (["absent.safetensors", "photos"], 3, ["absent.safetensors", "no such model file"]),
        (["plain.safetensors", "absent"], 3, ["absent", "no such file or folder"]),
        (["plain.safetensors", "nothing"], 3, ["nothing", "no pictures"]),
        (["plain.safetensors", "photos/*.xyz"], 3, ["no pictures"]),
        (["plain.safetensors", "photos", "--keypoints", "0"], 2, ["keypoints", "1 or more"]),
        (["plain.safetensors", "photos", "--batch", "0"], 2, ["batch"]),
        (["plain.safetensors", "photos", "--min-score", "2"], 2, ["min_score", "from 0 to 1"]),
        (["plain.safetensors", "photos", "--shard", "3/2", "--out", "x"], 2, ["--shard", "'3/2'"]),
        (["plain.safetensors", "photos", "--shard", "0/2", "--out", "x"], 2, ["--shard"]),
        (["plain.safetensors", "photos", "--shard", "1/2"], 2, ["--out"]),
        (["plain.safetensors", "photos", "--shard", "1/2", "--out", "x", "--json"], 2, ["--json"]),
        (["plain.safetensors", "photos", "--masks"], 2, ["--masks", "no layers"]),
        (["plain.safetensors", "photos", "--out", "photos"], 2, ["photos", "not empty"]),
        (["plain.safetensors", "photos", "--out", "plain.safetensors"], 2, ["cannot be made"]),
        (
            ["plain.safetensors", "photos", "--out", "held", "--keypoints", "3"],
            2,
            ["other results", "--keypoints"],
        ),
        (
            ["plain.safetensors", "photos", "--out", "held", "--detection.window", "5"],
            2,
            ["other results", "--detection setting"],
        ),
        (["plain.safetensors", "photos", "--detection.windw=5"], 2, ["detection.windw", "did you mean 'window'?"]),
        (["plain.safetensors", "photos", "--detection.window", "6"], 2, ["window must be odd"]),
        (["plain.safetensors", "photos", "--detection.relocate-keypoints", "1"], 2, ["background"]),
        (["plain.safetensors", "photos", "--detection.window"], 2, ["--detection.window", "no value"]),
        (["layers.safetensors", "photos", "--out", "held"], 2, ["held", "other results", "model"]),
        (["plain.safetensors", "photos/sub", "--out", "held"], 2, ["held", "other results", "source"]),
        (["plain.safetensors", "photos", "--wrong"], 2, ["--wrong"]),
        (["plain.safetensors"], 2, ["SOURCE"]),
    ],
)
def test_faults_are_one_sentence_and_leave_nothing(place, tusk, args, code, words):
    (place / "nothing").mkdir()
    if "held" in args:
        assert tusk("plain.safetensors", "photos", "--out", "held").code == 0
    before = sorted(place.rglob("*"))
    done = tusk(*args)
    lines = done.err.strip().splitlines()
    assert done.code == code, done.err
    assert done.out == "" and len(lines) == 1 and lines[0].startswith("tusk: "), done.err
    assert all(word in lines[0] for word in words), lines[0]
    assert sorted(place.rglob("*")) == before


def test_a_folder_that_may_not_be_looked_into_is_listed(place, tusk, monkeypatch):
    scandir = os.scandir

    def guarded(path="."):
        if str(path).endswith("photos/sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert tusk("plain.safetensors", "photos", "--out", "out").code == 0
    assert "sub,the folder cannot be read (Permission denied)" in (place / "out/unreadable.csv").read_text()
