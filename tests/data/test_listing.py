"""The list of files that a run began with."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tests.pictures import save_squares
from tusk.data.folder import FolderDataset
from tusk.data.listing import NAME, FileList, ListedFile, compare, list_files, read_list
from tusk.data.registry import Request, open_dataset
from tusk.errors import DataError


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    save_squares(folder, 5)
    return folder


def opened(folder, tmp_path):
    return list_files(FolderDataset(folder, size=16, cache_dir=tmp_path / "cache"), folder)


def test_what_changed_is_counted(pictures, tmp_path, monkeypatch):
    before = opened(pictures, tmp_path)
    assert [file.path for file in before.files] == [str(pictures / f"{number}.png") for number in range(5)]
    monkeypatch.chdir(tmp_path)
    assert opened("pictures", tmp_path).checksum == before.checksum, "paths are absolute"
    (pictures / "0.png").unlink()
    (pictures / "1.png").rename(pictures / "other.png")
    (pictures / "2.png").write_bytes((pictures / "2.png").read_bytes() + b"more")
    os.utime(pictures / "3.png", (1, 1))
    changes = compare(before, opened(pictures, tmp_path))
    assert (changes.gone, changes.new, changes.changed, changes.redated) == (2, 1, 1, 1)
    assert changes.are_others and changes.words == "2 gone, 1 new, 1 changed"
    assert not compare(before, before).are_others


def test_another_date_alone_is_the_same_picture(pictures, tmp_path):
    before = opened(pictures, tmp_path)
    os.utime(pictures / "3.png", (1, 1))
    after = opened(pictures, tmp_path)
    assert after.checksum == before.checksum and not compare(before, after).are_others


def test_other_content_of_the_same_size_is_another_picture(tmp_path):
    """All pictures of a microscope may have the same size, and the same names on the next day."""
    for day, value in (("one", 0), ("two", 9)):
        (tmp_path / day).mkdir()
        Image.fromarray(np.full((40, 60, 3), value, np.uint8)).save(tmp_path / day / "1.bmp")
    before = opened(tmp_path / "one", tmp_path)
    (tmp_path / "one" / "1.bmp").write_bytes((tmp_path / "two" / "1.bmp").read_bytes())
    after = opened(tmp_path / "one", tmp_path)
    assert after.files[0].size == before.files[0].size and after.checksum != before.checksum
    assert compare(before, after).words == "1 changed"
    former = FileList(tuple(replace(file, sample=None) for file in before.files))  # as an older tusk wrote it
    former.write(tmp_path)
    assert read_list(tmp_path) == former and not compare(former, after).are_others


def test_names_of_any_kind_come_back_and_damage_is_one_sentence(tmp_path):
    names = ["a\nb.png", 'quote".png', "\udcff.png", "ä.png"]
    listed = FileList(tuple(ListedFile(f"/x/{name}", 3, 4) for name in names))
    listed.write(tmp_path)
    assert read_list(tmp_path) == listed
    text = (tmp_path / NAME).read_text()
    (tmp_path / NAME).write_text(text.replace(", 3, 4,", ", 5, 4,", 1))
    with pytest.raises(DataError, match="is damaged"):
        read_list(tmp_path)
    (tmp_path / NAME).write_text(text[: len(text) // 2])
    with pytest.raises(DataError, match="is damaged"):
        read_list(tmp_path)
    (tmp_path / NAME).unlink()
    assert read_list(tmp_path) is None


def test_a_hundred_thousand_files_take_little(tmp_path):
    many = FileList(
        tuple(ListedFile(f"/pictures/of/a/long/day/{number:06}.png", number, 0, number) for number in range(10**5))
    )
    began = time.process_time()
    many.write(tmp_path)
    assert compare(read_list(tmp_path), many).words == ""
    assert time.process_time() - began < 5
    assert (tmp_path / NAME).stat().st_size < 10**7


def test_made_images_have_no_files_and_a_named_dataset_has_its_own(pictures):
    assert list_files(open_dataset("digits", Request(count=3)), None) is None

    class Named:
        def __len__(self):
            return 2

        def picture_file(self, index):
            return pictures / f"{index}.png"

    assert len(list_files(Named(), pictures).files) == 2
    assert len(list_files(object(), pictures).files) == 5, "where a dataset does not tell, all files below the source"
    assert len(list_files(object(), [pictures / "0.png", pictures / "1.png"]).files) == 2
