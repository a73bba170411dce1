"""Which files a source stands for, and in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tusk.config import Config
from tusk.data.sources import find_files, name_of, natural_key
from tusk.errors import DataError, UsageError
from tusk.presets import to_yaml


def test_folders_are_searched_below_and_in_natural_order(tmp_path: Path) -> None:
    wanted = ["a1/x.PNG", "a2/img2.jpg", "a2/img10.webp", "a10/x.gif", "B2.tiff", "b10.bmp", "bare"]
    for name in [*wanted, ".hidden.png", ".cache/x.png", "a1/._x.png"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name, format="PNG")
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "README").write_text("nothing")
    (tmp_path / "a1" / "circle").symlink_to(tmp_path)
    source = find_files(tmp_path)
    assert [source.label(file) for file in source.files] == wanted


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_numbers_in_names_are_counted(numbers: list[int]) -> None:
    names = [f"shot {number}b.jpg" for number in numbers]
    assert sorted(names, key=natural_key) == [f"shot {number}b.jpg" for number in sorted(numbers)]


def test_a_list_keeps_its_order_and_drops_repetitions(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\ufeffb.png\n\n# a remark\n  ./a.png\r\nb.png\nsub/c d.png", encoding="utf-8")
    source = find_files(tmp_path / "list.txt")
    assert [source.label(file) for file in source.files] == ["b.png", "a.png", "sub/c d.png"]
    assert (source.name, source.root) == ("list", tmp_path)


def test_a_pattern_and_its_root(tmp_path: Path) -> None:
    (tmp_path / "day1" / "raw").mkdir(parents=True)
    for name in ("10.x", "9.x", "8.y"):
        (tmp_path / "day1" / "raw" / name).touch()
    source = find_files(f"{tmp_path}/day?/**/*.x")
    assert [source.label(file) for file in source.files] == ["day1/raw/9.x", "day1/raw/10.x"]
    assert (source.name, source.root) == (tmp_path.name, tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file or folder; check the path"):
        find_files(tmp_path / "nowhere")


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4)).save(path, format="PNG")
    return path


@pytest.mark.parametrize("name", ["*.png", "2024", "2024-01-01", "yes", "[x]", "a: b", "~nobody", "None", "# no", "-"])
def test_a_path_is_taken_literally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    picture(tmp_path / "other.png")
    picture(tmp_path / "x.png")
    monkeypatch.chdir(tmp_path)
    picture(tmp_path / name)
    assert [file.name for file in find_files(name).files] == [name]
    (tmp_path / name).unlink()
    picture(tmp_path / name / "in it.png")
    source = find_files(name)
    assert [source.label(file) for file in source.files] == ["in it.png"] and source.name == name


def test_a_tilde_and_a_pattern_where_nothing_has_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    picture(tmp_path / "x.png")
    assert find_files("~/x.png").files == find_files("~/*.png").files == (tmp_path / "x.png",)
    with pytest.raises(DataError, match="there is no such file or folder"):
        find_files("~no-such-user/x.png")


def test_several_sources(tmp_path: Path) -> None:
    for name in ("b.png", "a.png", "day1/2.png", "day1/10.png", "day2/1.png"):
        picture(tmp_path / "set" / name)
    root = tmp_path / "set"
    source = find_files([root / "b.png", f"{root}/day*/*.png", root])
    labels = ["b.png", "day1/2.png", "day1/10.png", "day2/1.png", "a.png"]
    assert [source.label(file) for file in source.files] == labels, "each once, in the order in which they were named"
    assert (source.name, source.root, source.origin) == ("set", root, root)
    assert find_files((root / "day1", root / "day2")).name == "set"
    (root / "nothing").mkdir()
    partly = find_files([root / "b.png", root / "nothing", f"{root}/*.xyz"])
    assert partly.remarks() == [f"found no picture in {root / 'nothing'}, {root}/*.xyz"]
    with pytest.raises(DataError, match="absent: there is no such file"):
        find_files([root / "b.png", root / "absent"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "empty text"),
        ([], "empty list"),
        (["a.png", ""], "empty text"),
        (3, "it is a int"),
        ([b"a.png"], "it is a bytes"),
    ],
)
def test_what_is_no_path(source: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_files(source)


def test_names_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(tmp_path / "photos" / "a.png")
    picture(tmp_path / "photos.v2" / "b.png")
    monkeypatch.chdir(tmp_path)
    assert name_of("photos/*.png") == name_of("photos/") == name_of(["photos/a.png", "photos/x.png"]) == "photos"
    assert name_of("photos.v2") == "photos.v2" and name_of("photos/a.png") == "a"
    assert name_of(".") == name_of("*/*.png") == name_of(["photos", "photos.v2"]) == tmp_path.name
    monkeypatch.chdir(tmp_path / "photos")
    assert name_of("..") == tmp_path.name and name_of("*.png") == "photos"
    assert len(name_of("x" * 250 + ".png")) == 60


def save_manifest(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"model": "", "files": 1, "names": "", "part": 16}))


def save_run(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(to_yaml(Config()))
    (folder / "command.txt").write_text("tusk train photos\n")


@pytest.fixture
def with_results(tmp_path: Path) -> Path:
    """A picture beside the results of a training and of a detection, in which pictures lie."""
    picture(tmp_path / "a.png")
    save_manifest(tmp_path / "out")
    picture(tmp_path / "out" / "overlays" / "a.png.png")
    save_run(tmp_path / "runs" / "train" / "photos")
    picture(tmp_path / "runs" / "train" / "photos" / "seed-0" / "x.png")
    return tmp_path


def test_own_results_are_passed_over_and_counted(with_results: Path) -> None:
    for source in (with_results, f"{with_results}/**/*.png"):
        found = find_files(source)
        assert [found.label(file) for file in found.files] == ["a.png"]
        assert {found.label(folder) for folder in found.results} == {"out", "runs/train/photos"}
    found = find_files(with_results)
    assert found.remarks() == ["skipped 2 folders with results of tusk: out, runs/train/photos"]
    # What a shell makes of `*`.
    assert find_files(sorted(with_results.iterdir())).files == (with_results / "a.png",)
    listed = with_results / "list.txt"
    listed.write_text("a.png\nout/overlays/a.png.png\n")
    assert find_files(listed).files == (with_results / "a.png",) and find_files(listed).results


@pytest.mark.parametrize("inner", ["out", "out/overlays", "out/overlays/a.png.png", "out/overlays/*.png"])
def test_results_that_are_named_are_refused(with_results: Path, inner: str) -> None:
    with pytest.raises(DataError, match="only results of tusk"):
        find_files(with_results / inner)


def test_the_folder_for_results_is_passed_over_whatever_is_in_it(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    picture(tmp_path / "out" / "b.png")
    assert len(find_files(tmp_path).files) == 2
    found = find_files(tmp_path, without=tmp_path / "out")
    assert found.files == (tmp_path / "a.png",) and found.results == (tmp_path / "out",)


def test_files_of_others_with_such_names_are_no_results(tmp_path: Path) -> None:
    for name, text in {"manifest.json": '{"name": "my app", "files": []}', "config.yaml": "model: mine\n"}.items():
        picture(tmp_path / name.partition(".")[0] / "a.png")
        (tmp_path / name.partition(".")[0] / name).write_text(text)
    (tmp_path / "config" / "metrics.jsonl").touch()
    own = picture(tmp_path / "own" / "a.png")
    own.with_name("config.yaml").write_text(to_yaml(Config()))  # made by `tusk config > config.yaml`
    (tmp_path / "manifest" / "overlays").mkdir()
    picture(tmp_path / "manifest" / "overlays" / "b.png")
    assert len(find_files(tmp_path).files) == 4 and find_files(tmp_path).results == ()
