"""Files with several frames: how many there are, which are pictures, and each of them read."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tusk.data.images
from tusk.data.folder import FolderDataset
from tusk.data.formats import pages
from tusk.data.formats.pages import find_frames
from tusk.data.frames import with_frames
from tusk.data.images import Picture, read_frames, read_picture
from tusk.data.sources import PictureFile, find_files
from tusk.errors import DataError

GREYS = (10, 90, 170, 250)


def save_stack(path: Path, greys: tuple[int, ...] = GREYS, size: tuple[int, int] = (24, 16)) -> None:
    first, *others = (Image.new("RGB", size, (grey, 255 - grey, 0)) for grey in greys)
    first.save(path, save_all=True, append_images=others)


def middle(picture: Picture) -> tuple[int, ...]:
    height, width = picture.pixels.shape[:2]
    return tuple(int(value) for value in picture.pixels[height // 2, width // 2])


@pytest.mark.parametrize("suffix", ["tif", "gif"])
def test_every_frame_is_found_and_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"stack.{suffix}"
    save_stack(path)
    assert find_frames(path) == (0, 1, 2, 3)
    assert middle(read_picture(path)) == middle(read_picture(path, frame=0))
    for frame, grey in enumerate(GREYS):
        assert np.abs(np.subtract(middle(read_picture(path, frame=frame)), (grey, 255 - grey, 0))).max() <= 2
    seen = read_frames(path, [1, 3], lambda frame, picture: (frame, middle(picture)[0]))
    assert seen == [(1, middle(read_picture(path, frame=1))[0]), (3, middle(read_picture(path, frame=3))[0])]


def test_both_byte_orders_and_both_kinds_of_tiff(tmp_path: Path) -> None:
    for name, options in {"big.tif": {"big_tiff": True}, "classic.tif": {}}.items():
        images = [Image.new("L", (8, 8), grey) for grey in GREYS]
        images[0].save(tmp_path / name, save_all=True, append_images=images[1:], **options)
        assert find_frames(tmp_path / name) == (0, 1, 2, 3)
    chain = b"MM\0*" + struct.pack(">I", 8)
    for place in (8, 14, 20):
        chain += struct.pack(">HI", 0, place + 6 if place < 20 else 0)
    (tmp_path / "motorola.tif").write_bytes(chain)
    assert find_frames(tmp_path / "motorola.tif") == (0, 1, 2)


def test_smaller_copies_of_a_page_are_no_pictures(tmp_path: Path) -> None:
    pyramid = [Image.new("L", (32 >> level, 32 >> level), 100) for level in range(3)]
    for level, image in enumerate(pyramid):
        image.encoderinfo = {"tiffinfo": {254: 1 if level else 0}}
    pyramid[0].save(tmp_path / "slide.tif", save_all=True, append_images=pyramid[1:], tiffinfo={254: 0})
    assert find_frames(tmp_path / "slide.tif") == (0,)


def test_hostile_structures_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    circle = b"II*\0" + struct.pack("<I", 8) + struct.pack("<HI", 0, 14) + struct.pack("<HI", 0, 8)
    endless = b"II*\0" + struct.pack("<I", 8)
    for place in range(8, 8 + 6 * 500, 6):
        endless += struct.pack("<HI", 0, place + 6)
    monkeypatch.setattr(pages, "MAX_FRAMES", 50)
    for name, content, count in (
        ("circle.tif", circle, 2),
        ("endless.tif", endless, 51),
        ("cut.tif", circle[:14], 1),
        ("outside.tif", b"II*\0" + struct.pack("<I", 2**31), 1),
        ("tags.tif", b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, 2**60), 1),
        ("short.tif", b"II*\0\x08", 1),
        ("short.gif", b"GIF89a", 1),
        ("blocks.gif", b"GIF89a" + bytes(7) + b"!\xff" + b"\x01x" * 1000, 1),
        ("text.tif", b"hello", 1),
    ):
        (tmp_path / name).write_bytes(content)
        assert len(find_frames(tmp_path / name)) == count, name
    assert find_frames(tmp_path / "absent.tif") == (0,)


def test_too_many_frames_are_refused_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tusk.data.frames.MAX_FRAMES", 3)
    save_stack(tmp_path / "a.tif")
    save_stack(tmp_path / "b.tif", GREYS[:2])
    source = with_frames(find_files(tmp_path), "all")
    assert [source.label(*picture) for picture in source.pictures] == ["b.tif#1", "b.tif#2"]
    assert "more than 3 frames" in source.unreadable[0].reason


def test_the_size_of_every_frame_is_checked_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = Image.new("L", (10, 10)), Image.new("L", (90, 90))
    small.save(tmp_path / "a.tif", save_all=True, append_images=[large])
    monkeypatch.setattr(tusk.data.images, "MAX_PIXELS", 1000)
    fine, refused = read_frames(tmp_path / "a.tif", [0, 1], lambda _, picture: picture.original_width)
    assert fine == 10 and isinstance(refused, DataError) and "90 x 90" in refused.why
    # The second frame of a GIF reaches far beyond the first, which is the canvas.
    canvas = b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0x80, 0, 0) + bytes(6)
    frames = b"".join(b"," + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x02\x02\x4c\x01\0" for side in (4, 60_000))
    (tmp_path / "b.gif").write_bytes(canvas + frames + b";")
    assert find_frames(tmp_path / "b.gif") == (0, 1)
    with pytest.raises(DataError, match="60000 x 60000"):
        read_picture(tmp_path / "b.gif", frame=1)


def test_a_damaged_frame_does_not_take_the_others_along(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    images = [Image.new("L", (16, 16), grey) for grey in GREYS[:3]]
    images[0].save(path, save_all=True, append_images=images[1:], compression="tiff_lzw")
    with Image.open(path) as image:
        image.seek(1)
        offset, length = image.tag_v2[273][0], image.tag_v2[279][0]
    content = bytearray(path.read_bytes())
    content[offset : offset + length] = b"\xff" * length
    path.write_bytes(content)
    first, second, third = read_frames(path, [0, 1, 2], lambda _, picture: middle(picture)[0])
    assert (first, third) == (10, 170) and isinstance(second, DataError)


def test_frames_of_a_source(tmp_path: Path) -> None:
    save_stack(tmp_path / "stack.tif")
    save_stack(tmp_path / "film.gif", GREYS[:3])
    Image.new("RGB", (8, 8)).save(tmp_path / "one.tif")
    Image.new("RGB", (8, 8)).save(tmp_path / "one.png")
    first = with_frames(find_files(tmp_path), "first")
    assert first.files == find_files(tmp_path).files and first.frames == ()
    assert (first.ignored_frames, first.ignored_in) == (5, 2)
    assert first.remarks() == ["ignored 5 frames in 2 multi-page files (--frames all takes each as a picture)"]
    every = with_frames(find_files(tmp_path), "all")
    labels = [every.label(*picture) for picture in every.pictures]
    assert labels == [
        *(f"film.gif#{number}" for number in (1, 2, 3)),
        "one.png",
        "one.tif",
        *(f"stack.tif#{number}" for number in (1, 2, 3, 4)),
    ]
    assert next(iter(every.pictures)) == PictureFile(tmp_path / "film.gif", 0) and every.remarks() == []


@pytest.mark.parametrize("fit", ["centre-crop", "tiles"])
def test_a_dataset_of_frames(tmp_path: Path, fit: str) -> None:
    (tmp_path / "in").mkdir()
    save_stack(tmp_path / "in" / "stack.tif", size=(24, 8))
    Image.new("RGB", (24, 8), "white").save(tmp_path / "in" / "z.png")

    def opened(frames: str) -> FolderDataset:
        return FolderDataset(tmp_path / "in", size=8, fit=fit, frames=frames, cache_dir=tmp_path / "cache")  # type: ignore[arg-type]

    tiles = 3 if fit == "tiles" else 1
    for _ in range(2):  # decoded, then from the cache
        first, every = opened("first"), opened("all")
        assert (len(first), first.pictures, first.found.ignored_frames) == (2 * tiles, 2, 3)
        assert (len(every), every.pictures, every.found.ignored_frames) == (5 * tiles, 5, 0)
        assert [int(every.image(index)[0, 0, 0]) for index in range(0, 5 * tiles, tiles)] == [*GREYS, 255]
        assert every.path(3 * tiles) == tmp_path / "in" / "stack.tif"
        assert every.sizes == {(24, 8): 5}
