"""Tetrominoes: the made ones obey the rules, and the original file's encoding is read back to the same truth."""

from __future__ import annotations

import hashlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.data.formats import tfrecord_writer as writer
from tusk.data import convert
from tusk.data.dataset import Dataset, Truth, UInt8Array
from tusk.data.datasets.tetrominoes import COLORS, SHAPES, Tetrominoes, read_tetrominoes
from tusk.data.packed import PackedDataset, Provenance, write_packed
from tusk.errors import DataError, UsageError

BLOCK = np.array(
    [
        [191, 255, 255, 255, 223],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [95, 63, 63, 63, 127],
    ]
)
RGB = {"red": "100", "green": "010", "blue": "001", "cyan": "011", "magenta": "101", "yellow": "110"}
SOME = 1500


@pytest.fixture(scope="module")
def made() -> list[tuple[UInt8Array, Truth]]:
    dataset = Tetrominoes(count=SOME)
    return [(dataset.image(index), dataset.truth(index)) for index in range(SOME)]


def cells(cover: np.ndarray) -> frozenset[tuple[int, int]]:
    """A piece's blocks as (row, column) from its top-left corner, found without knowing any shape."""
    rows, columns = np.nonzero(cover)
    blocks = {((y - rows.min()) // 5, (x - columns.min()) // 5) for y, x in zip(rows, columns, strict=True)}
    assert len(rows) == 100 and len(blocks) == 4
    return frozenset((int(y), int(x)) for y, x in blocks)


def connected(blocks: frozenset[tuple[int, int]]) -> bool:
    reached = {min(blocks)}
    for _ in range(4):
        reached |= {(y, x) for y, x in blocks if any(abs(y - v) + abs(x - u) == 1 for v, u in reached)}
    return reached == blocks


def test_it_is_a_dataset() -> None:
    assert isinstance(Tetrominoes(), Dataset)
    assert (len(Tetrominoes()), len(Tetrominoes("test"))) == (50_000, 10_000)
    assert Tetrominoes().image(0).shape == (35, 35, 3)


def test_three_pieces_of_a_hundred_pixels_that_never_overlap(made: list[tuple[UInt8Array, Truth]]) -> None:
    for image, truth in made:
        assert truth.mask is not None
        # Overlapping pieces would leave one of them fewer than 100 pixels.
        assert np.bincount(truth.mask.ravel(), minlength=4).tolist() == [35 * 35 - 300, 100, 100, 100]
        np.testing.assert_array_equal(truth.mask > 0, image.any(axis=2))


def test_every_block_has_the_exact_pattern(made: list[tuple[UInt8Array, Truth]]) -> None:
    for image, truth in made[:300]:
        assert truth.mask is not None
        rest = image.astype(int)
        for piece in range(3):
            cover = truth.mask == piece + 1
            rows, columns = np.nonzero(cover)
            color = [int(on) for on in RGB[COLORS[truth.attributes["color"].values[piece]]]]
            for row, column in cells(cover):
                y, x = rows.min() + 5 * row, columns.min() + 5 * column
                np.testing.assert_array_equal(rest[y : y + 5, x : x + 5], BLOCK[:, :, None] * color)
                rest[y : y + 5, x : x + 5] = 0
        assert not rest.any()


def test_points_and_boxes_are_those_of_the_pixels(made: list[tuple[UInt8Array, Truth]]) -> None:
    for _, truth in made[:300]:
        assert truth.mask is not None and truth.points is not None and truth.boxes is not None
        assert truth.points.dtype == truth.boxes.dtype == np.float32
        for piece in range(3):
            rows, columns = np.nonzero(truth.mask == piece + 1)
            assert truth.points[piece].tolist() == [columns.mean(), rows.mean()]
            edges = [columns.min() - 0.5, rows.min() - 0.5, columns.max() + 0.5, rows.max() + 0.5]
            assert truth.boxes[piece].tolist() == edges


def test_nineteen_shapes_each_its_own(made: list[tuple[UInt8Array, Truth]]) -> None:
    """Every name stands for one set of blocks and the other way round, all connected: there are 19 such sets."""
    seen: dict[int, set[frozenset[tuple[int, int]]]] = {}
    for _, truth in made:
        assert truth.mask is not None
        for piece, shape in enumerate(truth.attributes["shape"].values.tolist()):
            seen.setdefault(shape, set()).add(cells(truth.mask == piece + 1))
    assert sorted(seen) == list(range(19)) and len(SHAPES) == len(set(SHAPES)) == 19
    assert all(len(forms) == 1 for forms in seen.values())
    forms = {form for found in seen.values() for form in found}
    assert len(forms) == 19
    assert all(connected(form) for form in forms)


def test_shapes_colours_and_places_are_even(made: list[tuple[UInt8Array, Truth]]) -> None:
    shapes = np.concatenate([truth.attributes["shape"].values for _, truth in made])
    colors = np.concatenate([truth.attributes["color"].values for _, truth in made])
    for values, count in ((shapes, 19), (colors, 6), (shapes * 6 + colors, 114)):
        expected = len(values) / count
        found = np.bincount(values, minlength=count)
        # Five standard deviations of a fair draw.
        assert np.abs(found - expected).max() < 5 * np.sqrt(expected)
    lit = np.mean([image.any(axis=2) for image, _ in made], axis=0)
    assert lit.min() > 0  # the very corners too
    np.testing.assert_allclose(lit, lit[::-1], atol=0.07)
    np.testing.assert_allclose(lit, lit[:, ::-1], atol=0.07)
    corners = np.concatenate([truth.boxes[:, :2] + 0.5 for _, truth in made if truth.boxes is not None])
    assert set((corners % 5).ravel().tolist()) == {0, 1, 2, 3, 4}


def test_an_image_depends_on_seed_split_and_index_alone() -> None:
    whole = Tetrominoes(count=40, seed=3)
    backwards = [whole.image(index) for index in reversed(range(40))][::-1]
    np.testing.assert_array_equal(whole.images(range(40)), backwards)
    np.testing.assert_array_equal(Tetrominoes(count=10, seed=3).image(7), backwards[7])
    np.testing.assert_array_equal(whole.image(-1), backwards[39])
    digests = {
        hashlib.sha256(dataset.images(range(200)).tobytes()).hexdigest()
        for dataset in (Tetrominoes(), Tetrominoes("test"), Tetrominoes(seed=1), Tetrominoes("test", seed=1))
    }
    assert len(digests) == 4
    with pytest.raises(IndexError):
        whole.image(40)
    with pytest.raises(IndexError):
        whole.truth(-41)


def test_the_same_bytes_on_every_machine() -> None:
    digest = hashlib.sha256(Tetrominoes(count=64).images(range(64)).tobytes()).hexdigest()
    assert digest == "9f5e25d26fe8808326d2aba6e38503cf21346032827ba772a76bb7c3827a55c6"


def test_train_and_test_share_no_image() -> None:
    train = {image.tobytes() for image in Tetrominoes().images(range(2000))}
    test = {image.tobytes() for image in Tetrominoes("test").images(range(2000))}
    assert len(train) == len(test) == 2000
    assert not train & test


def test_what_cannot_be_made() -> None:
    with pytest.raises(UsageError, match="did you mean 'train'"):
        Tetrominoes("trian")
    with pytest.raises(UsageError):
        Tetrominoes(count=0)
    with pytest.raises(UsageError):
        Tetrominoes(seed=-1)


def original(image: UInt8Array, truth: Truth, /, **changed: bytes) -> bytes:
    """One record as in the original file: entity 0 is the background."""
    assert truth.mask is not None and truth.points is not None
    masks = np.stack([truth.mask == entity for entity in range(4)])[..., None] * 255
    features = {
        "image": writer.one_byte_each(image),
        "mask": writer.one_byte_each(masks),
        "x": writer.floats([0, *truth.points[:, 0]]),
        "y": writer.floats([0, *truth.points[:, 1]], packed=False),
        "shape": writer.floats([0, *truth.attributes["shape"].values]),
        "color": writer.floats(np.zeros((4, 3))),
        "visibility": writer.floats([1, 1, 1, 1]),
    }
    return writer.example(**{**features, **changed})


@pytest.fixture
def file(tmp_path: Path, made: list[tuple[UInt8Array, Truth]]) -> Path:
    records = [original(image, truth) for image, truth in made[:30]]
    return writer.write_records(tmp_path / "tetrominoes_train.tfrecords", records, compress=True)


def same(found: PackedDataset, wanted: list[tuple[UInt8Array, Truth]]) -> None:
    assert len(found) == len(wanted)
    for index, (image, truth) in enumerate(wanted):
        np.testing.assert_array_equal(found.image(index), image)
        read = found.truth(index)
        assert read is not None
        for name in ("points", "boxes", "mask"):
            np.testing.assert_array_equal(getattr(read, name), getattr(truth, name))
        for name, attribute in truth.attributes.items():
            assert read.attributes[name].names == attribute.names
            np.testing.assert_array_equal(read.attributes[name].values, attribute.values)


def test_the_original_is_read_and_split(file: Path, made: list[tuple[UInt8Array, Truth]]) -> None:
    before = file.read_bytes()
    same(read_tetrominoes(file), made[:25])  # five sixths, as 50,000 of 60,000
    same(read_tetrominoes(file, "test"), made[25:30])
    same(read_tetrominoes(file, "test", limit=12), made[10:12])
    assert file.read_bytes() == before
    assert read_tetrominoes(file).name == Tetrominoes.name


def test_an_uncompressed_original_and_a_cache_folder(tmp_path: Path, made: list[tuple[UInt8Array, Truth]]) -> None:
    records = [original(image, truth) for image, truth in made[:6]]
    file = writer.write_records(tmp_path / "tetrominoes_train.tfrecords", records)
    seen: list[tuple[int, int | None]] = []
    same(read_tetrominoes(file, cache=tmp_path / "cache", progress=lambda *step: seen.append(step)), made[:5])
    assert [done for done, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert {path.name for path in tmp_path.iterdir()} == {"tetrominoes_train.tfrecords", "cache"}
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tetrominoes_train.packed.h5"]


def test_the_splits_of_the_whole_file() -> None:
    assert convert.split_rows(80_000, 50_000, 10_000) == (range(50_000), range(70_000, 80_000))
    assert convert.split_rows(60_000, 50_000, 10_000) == (range(50_000), range(50_000, 60_000))
    assert convert.split_rows(30_000, 50_000, 10_000) == (range(20_000), range(20_000, 30_000))
    for count in [*range(40), 29_999]:
        train, test = convert.split_rows(count, 50_000, 10_000)
        assert [*train, *test] == list(range(count))
        assert len(test) == count // 6


def test_it_is_converted_once_and_again_when_the_source_changes(
    file: Path, made: list[tuple[UInt8Array, Truth]], monkeypatch: pytest.MonkeyPatch
) -> None:
    conversions: list[Path] = []
    real = convert.read_records
    monkeypatch.setattr(convert, "read_records", lambda path: conversions.append(path) or real(path))
    read_tetrominoes(file)
    read_tetrominoes(file, "test")
    assert len(conversions) == 1
    writer.write_records(file, [original(*item) for item in made[30:40]], compress=True)
    same(read_tetrominoes(file, "test"), made[39:40])
    assert len(conversions) == 2
    file.unlink()  # who has the packed file needs the original no more
    same(read_tetrominoes(file, "test"), made[39:40])


def test_nothing_else_is_overwritten(file: Path) -> None:
    there = file.with_name("tetrominoes_train.packed.h5")
    there.write_text("somebody's own file")
    with pytest.raises(DataError, match=r"is in the way.*another cache folder"):
        read_tetrominoes(file)
    assert there.read_text() == "somebody's own file"
    write_packed(there, Tetrominoes(count=3), provenance=Provenance("made", seed=0))
    before = there.read_bytes()
    with pytest.raises(DataError, match="is in the way"):
        read_tetrominoes(file)
    assert there.read_bytes() == before


def test_a_damaged_original_leaves_no_packed_file(file: Path, tmp_path: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"tetrominoes_train\.tfrecords: record \d+ at byte .*truncated"):
        read_tetrominoes(file)
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(DataError, match="is not a file"):
        read_tetrominoes(tmp_path / "none.tfrecords")


def test_a_record_that_does_not_fit_is_named(tmp_path: Path, made: list[tuple[UInt8Array, Truth]]) -> None:
    image, truth = made[0]
    assert truth.mask is not None
    hole = np.stack([truth.mask == entity for entity in range(4)]) * 255
    hole[2, *np.argwhere(hole[2])[0]] = 0
    grey = np.repeat(image.max(axis=2, keepdims=True), 3, axis=2)
    wrong = {
        "feature 'image' has 3,600 values": {"image": writer.one_byte_each(image.ravel()[:3600])},
        "feature 'mask' has 3,675 values": {"mask": writer.one_byte_each(image)},
        "feature 'image' holds float": {"image": writer.floats(image)},
        "feature 'visibility' has 3 values": {"visibility": writer.floats([1, 1, 1])},
        "mask of piece 2 is no tetromino": {"mask": writer.one_byte_each(hole)},
        "mask of piece 1 is empty": {"mask": writer.one_byte_each(np.zeros((4, 35, 35)))},
        "none of the six colours": {"image": writer.one_byte_each(grey)},
    }
    for words, changed in wrong.items():
        records = [original(image, truth), original(image, truth, **changed)]
        file = writer.write_records(tmp_path / "tetrominoes_train.tfrecords", records)
        with pytest.raises(DataError, match=rf"tetrominoes_train\.tfrecords, record 1 .*{words}"):
            read_tetrominoes(file)
    bare = writer.write_records(tmp_path / "bare.tfrecords", [writer.example(other=writer.floats([1]))])
    with pytest.raises(DataError, match="there is no feature 'image', only other"):
        read_tetrominoes(bare)


def test_an_invisible_piece_is_left_out(tmp_path: Path, made: list[tuple[UInt8Array, Truth]]) -> None:
    image, truth = made[0]
    records = [original(image, truth, visibility=writer.floats([1, 1, 0, 1])), original(image, truth)]
    read = read_tetrominoes(writer.write_records(tmp_path / "a.tfrecords", records)).truth(0)
    assert read is not None and read.points is not None and truth.points is not None
    np.testing.assert_array_equal(read.points, truth.points[[0, 2]])


def test_too_few_for_a_split(tmp_path: Path, made: list[tuple[UInt8Array, Truth]]) -> None:
    file = writer.write_records(tmp_path / "a.tfrecords", [original(*made[0])])
    assert len(read_tetrominoes(file)) == 1
    with pytest.raises(DataError, match="too few for the split 'test'"):
        read_tetrominoes(file, "test")
    with pytest.raises(DataError, match="no image"):
        read_tetrominoes(writer.write_records(tmp_path / "empty.tfrecords", []))


def test_made_images_can_be_packed(tmp_path: Path, made: list[tuple[UInt8Array, Truth]]) -> None:
    path = write_packed(tmp_path / "made.h5", Tetrominoes(count=20), provenance=Provenance("tetrominoes", seed=0))
    same(PackedDataset(path), made[:20])
    with h5py.File(path) as file:
        assert file["images"].shape == (20, 35, 35, 3)
