"""`tusk data` as a user meets it."""

import numpy as np
import pytest
from PIL import Image

from tests.cli.test_main import assert_sentence, tusk
from tusk.data.datasets.tetrominoes import Tetrominoes
from tusk.data.packed import PackedDataset


def test_list_names_every_dataset():
    said = tusk("data", "list").stdout
    for name in ("folder", "digits", "mnist-hard", "tetrominoes", "clevr6", "celeba", "faces", "h36m", "people"):
        assert f"\n{name} " in said
    assert "tusk data make" in tusk("data").stdout


def test_make_then_info(tmp_path):
    done = tusk("data", "make", "tetrominoes", "--count", 5, "--out", tmp_path / "made", "--png", "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "made" / "train.h5")
    packed, made = PackedDataset(tmp_path / "made" / "train.h5"), Tetrominoes(count=5, seed=3)
    assert len(packed) == 5
    for index in range(5):
        assert np.array_equal(packed.image(index), made.image(index))
        written = np.asarray(Image.open(tmp_path / "made" / "train" / f"{index:06d}.png"))
        assert np.array_equal(written, made.image(index))
    assert Image.open(tmp_path / "made" / "train-sheet.png").width > 500

    sheet = tmp_path / "sheet.png"
    done = tusk("data", "info", tmp_path / "made" / "train.h5", "--sheet", sheet)
    assert "images: 5\n" in done.stdout and "size: 35x35\n" in done.stdout and "color: " in done.stdout
    assert sheet.exists()
    again = tusk("data", "make", "tetrominoes", "--count", 5, "--out", tmp_path / "made")
    assert_sentence(again, 2, "train.h5", "there already")


def test_info_on_a_folder_counts_what_was_skipped(tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(4):
        Image.new("L", (30, 20), number * 60).save(pictures / f"{number}.png")
    (pictures / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    done = tusk("data", "info", pictures, "--sheet", tmp_path / "s.png", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "images: 4\n" in done.stdout and "skipped: 1 files" in done.stdout and "truth: none" in done.stdout
    assert sorted(file.name for file in pictures.iterdir()) == ["0.png", "1.png", "2.png", "3.png", "broken.png"]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["make", "celeba", "--out", "x"], 2, ["celeba", "cannot make it"]),
        (["make", "tetromino", "--out", "x"], 2, ["did you mean 'tetrominoes'?"]),
        (["make", "digits", "--out", "x", "--count", "0"], 2, ["--count"]),
        (["make", "digits", "--out", "x", "--seed", "-1"], 2, ["--seed"]),
        (["info", "no/such/folder"], 3, ["no/such/folder"]),
        (["get", "imagenet"], 2, ["imagenet", "mnist"]),
    ],
)
def test_faults_are_one_sentence(args, code, words, tmp_path):
    assert_sentence(tusk("data", *args, cwd=tmp_path), code, *words)
    assert not (tmp_path / "x").exists()
