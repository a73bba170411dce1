"""names.json: beside the model, whole, and never that of another one."""

import threading

import pytest

from tests.detection.bright import bright_model
from tusk.errors import DataError, UsageError
from tusk.model.storage import save_model
from tusk.naming import NamesFile, names_path, open_names
from tusk.naming.edits import Hide, Rename
from tusk.weights import shipped_models


@pytest.fixture(scope="module")
def model():
    return bright_model()


def test_names_lie_beside_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names_path(tmp_path / "run" / "model.safetensors") == tmp_path / "run" / "names.json"
    assert names_path(tmp_path / "cells.safetensors") == tmp_path / "cells.names.json"
    shipped = names_path(shipped_models()["mnist-hard"])
    assert shipped.as_posix() == "runs/names/mnist-hard.names.json"


def test_what_one_writes_another_reads(tmp_path, model):
    path = tmp_path / "deep" / "names.json"
    first, second = NamesFile(path, model), NamesFile(path, model)
    first.edit(lambda _: Rename(type=0, name="a"))
    assert second.naming() == first.naming() == open_names(path, model)
    second.undo()
    assert first.naming().edits == ()
    first.redo()
    assert len(second.naming().edits) == 1


def test_writers_wait_for_each_other(tmp_path, model):
    path = tmp_path / "names.json"

    def work():
        names = NamesFile(path, model)
        for number in range(10):
            names.edit(lambda _, number=number: Hide(type=1, hidden=bool(number % 2)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(open_names(path, model).edits) == 40


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": "tusk-names", "version": 2}', "\x00" * 100])
def test_damaged_files_are_refused_in_one_sentence(tmp_path, model, content):
    path = tmp_path / "names.json"
    path.write_text(content)
    with pytest.raises(DataError, match="not a file of names"):
        NamesFile(path, model)
    assert path.read_text() == content


def test_names_of_another_model_and_edits_that_do_not_fit(tmp_path, model):
    path = tmp_path / "names.json"
    names = NamesFile(path, model)
    names.edit(lambda _: Hide(type=2))
    text = path.read_text()
    path.write_text(text.replace(model.fingerprint(), "0" * 64))
    with pytest.raises(DataError, match="another model"):
        open_names(path, model)
    path.write_text(text.replace('"type": 2', '"type": 77').replace('"type":2', '"type":77'))
    with pytest.raises(DataError, match="do not fit together"):
        open_names(path, model)


def test_a_folder_that_cannot_be_written(tmp_path, model):
    (tmp_path / "file").write_text("")
    names = NamesFile(tmp_path / "file" / "names.json", model)
    with pytest.raises((UsageError, DataError)):
        names.edit(lambda _: Hide(type=0))


def test_a_loaded_model_has_the_names_beside_it(tmp_path, model):
    import tusk

    save_model(tmp_path / "model.safetensors", model)
    plain = tusk.load(tmp_path / "model.safetensors")
    assert plain.names == {0: "type 0", 1: "type 1", 2: "type 2"}
    NamesFile(tmp_path / "names.json", plain._stored).edit(lambda _: Rename(type=1, name="spot"))
    assert tusk.load(tmp_path / "model.safetensors").names[1] == "spot"
