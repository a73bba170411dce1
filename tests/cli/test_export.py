"""`tusk export` as a user meets it."""

from types import SimpleNamespace

import pytest

from tests.export.results import TYPES, write_folder
from tusk.cli import main as cli
from tusk.cli.export import _FORMATS, read_names
from tusk.errors import DataError
from tusk.export.formats import FORMATS


@pytest.fixture
def tusk(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*args):
        code = 0
        try:
            cli.main(["export", *map(str, args)])
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    return run


def test_every_format_from_the_shell(tusk, tmp_path):
    write_folder(tmp_path / "found", masks=True)
    assert _FORMATS.split(", ") == list(FORMATS)
    for to in FORMATS:
        done = tusk("found", "--to", to)
        assert done.code == 0, done.err
        assert done.out == f"runs/export/found-{to}\n"
        lines = done.err.splitlines()
        assert lines[0] == f"Results go to runs/export/found-{to}" and lines[-1].endswith(f"runs/export/found-{to}")
        assert any(line.startswith("21 points of 8 pictures as ") for line in lines)
    assert tusk("found", "--to", "coco").out == "runs/export/found-coco-2\n"  # earlier results stay


def test_names_come_from_a_file(tusk, tmp_path):
    write_folder(tmp_path / "found", masks=False)
    (tmp_path / "names.yaml").write_text("0: 'cell, large'\n3: dust\n")
    done = tusk("found", "--to", "yolo", "--names", "names.yaml", "--out", "mine")
    assert (done.code, done.out) == (0, "mine\n")
    names = (tmp_path / "mine" / "classes.txt").read_text().splitlines()
    assert names == ["cell, large", "type 1", "type 2", "dust"] and len(names) == TYPES


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["absent", "--to", "coco"], 3, "absent: there is no such folder"),
        (["found", "--to", "cooc"], 2, "did you mean 'coco'?"),
        (["found", "--to", "coco", "--out", "found"], 2, "the folder is not empty"),
        (["found"], 2, "--to"),
        (["found", "--to", "coco", "--names", "none.json"], 3, "none.json: it cannot be read"),
    ],
)
def test_faults_are_one_sentence(tusk, tmp_path, args, code, words):
    write_folder(tmp_path / "found", masks=False)
    done = tusk(*args)
    assert (done.code, done.out) == (code, "") and words in done.err, done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize("text", ["[1, 2]", "{", "{a: b}", "{0: [1]}", "3"])
def test_damaged_names_are_refused(tmp_path, text):
    (tmp_path / "names.json").write_text(text)
    with pytest.raises(DataError, match=r"names\.json"):
        read_names(tmp_path / "names.json")
