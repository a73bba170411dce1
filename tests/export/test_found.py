"""A folder of results is read back as it was written; what is no finished folder of results is refused."""

import json

import pytest

from tests.export.results import NAMES, PICTURES, TYPES, write_folder
from tusk.errors import UserError
from tusk.export.convert import export_results
from tusk.export.found import read_results, type_names


@pytest.mark.parametrize("masks", [False, True])
def test_results_are_read_as_they_were_found(tmp_path, masks):
    every = write_folder(tmp_path / "found", masks=masks)
    found = read_results(tmp_path / "found", NAMES)
    assert [picture.image for picture in found.pictures] == PICTURES
    assert found.names == (*NAMES.values(), "type 3")
    assert [(picture.width, picture.height, picture.found) for picture in found.pictures] == [
        (picture.width, picture.height, picture.found) for picture in every
    ]


def test_types_of_one_name_are_one_class(tmp_path):
    write_folder(tmp_path / "found", masks=False)
    found = read_results(tmp_path / "found", {0: "cell", 2: " cell ", 3: ""})
    assert found.names == ("cell", "type 1", "cell", "type 3") and found.classes == ("cell", "type 1", "type 3")
    numbers = {(one.type, found.class_number(one)) for picture in found.pictures for one in picture.found}
    assert numbers == {(0, 0), (1, 1), (2, 0), (3, 2)}


def test_names_of_types_that_do_not_exist_are_refused():
    assert type_names(2) == ("type 0", "type 1")
    with pytest.raises(UserError, match="there is no type 7; types are counted from 0 to 3"):
        type_names(TYPES, {7: "x"})


def test_what_is_no_folder_of_results_is_refused(tmp_path):
    for name, why in [("absent", "no such folder"), ("empty", "it holds no results"), ("half", "not finished")]:
        if name == "empty":
            (tmp_path / name).mkdir()
        if name == "half":
            write_folder(tmp_path / name, masks=False, finished=False)
        with pytest.raises(UserError, match=why):
            export_results(tmp_path / name, "coco", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["{", "[]", "null", '{"images": 3}', "[" * 100_000])
def test_damaged_results_are_refused(tmp_path, damage):
    write_folder(tmp_path / "found", masks=True)
    (tmp_path / "found" / "coco.json").write_text(damage)
    with pytest.raises(UserError, match=r"coco.json: it is not as 'tusk detect' wrote it"):
        read_results(tmp_path / "found")


def test_files_of_different_results_are_refused(tmp_path):
    write_folder(tmp_path / "found", masks=False)
    path = tmp_path / "found" / "coco.json"
    values = json.loads(path.read_text())
    values["annotations"].pop()
    path.write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"coco.json: it is not as"):
        read_results(tmp_path / "found")


def test_an_unknown_format_and_a_full_folder_are_refused(tmp_path):
    write_folder(tmp_path / "found", masks=False)
    with pytest.raises(UserError, match="there is no such format; did you mean 'coco'"):
        export_results(tmp_path / "found", "cocoo")
    with pytest.raises(UserError, match="the folder is not empty"):
        export_results(tmp_path / "found", "coco", tmp_path / "found")


def test_names_that_were_given_before_the_detection_are_kept(tmp_path):
    """With names, coco.json has those, and no category for a type that was merged or hidden."""
    every = write_folder(tmp_path / "found", masks=False)
    path = tmp_path / "found" / "coco.json"
    values = json.loads(path.read_text())
    used = {one.type for picture in every for one in picture.found}
    values["categories"] = [{"id": 1 + number, "name": f"kind {number}"} for number in sorted(used)]
    path.write_text(json.dumps(values))
    found = read_results(tmp_path / "found", {min(used): "cell"})
    assert found.names[min(used)] == "cell" and found.names[max(used)] == f"kind {max(used)}"
    assert len(found.names) == 1 + max(used)


def test_types_that_are_gone_are_no_classes(tmp_path):
    write_folder(tmp_path / "found", masks=False)
    path = tmp_path / "found" / "coco.json"
    values = json.loads(path.read_text())
    values["categories"] = [{"id": 2 + number, "name": f"kind {number}"} for number in (0, 3)]  # of types 1 and 4
    values["annotations"] = []
    path.write_text(json.dumps(values))
    table = path.with_name("detections.csv")
    table.write_text(table.read_text().splitlines(keepends=True)[0])
    found = read_results(tmp_path / "found")
    assert found.classes == ("kind 0", "kind 3") and found.names == ("", "kind 0", "", "", "kind 3")
