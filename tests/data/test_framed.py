"""Named and packed datasets come before the network as the same pictures do in use, and their truth with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tusk.config import DataConfig
from tusk.data.dataset import Truth, UInt8Array
from tusk.data.datasets.celeba import BOX_COLUMNS, LANDMARK_COLUMNS
from tusk.data.framing import Framing, fit_picture
from tusk.data.images import Picture, read_picture
from tusk.data.packed import PackedWriter, Provenance
from tusk.data.registry import Request, check_data, open_dataset, request_for
from tusk.errors import UsageError

COUNT = 3


def photograph(width: int, height: int, seed: int) -> UInt8Array:
    """A smooth ramp with noise: every place looks different."""
    y, x = np.mgrid[0:height, 0:width]
    ramps = np.stack([x * 200 // width, y * 200 // height, (x + y) * 200 // (width + height)], axis=2)
    return (ramps + np.random.default_rng(seed).integers(20, 50, ramps.shape)).astype(np.uint8)


def celeba(root: Path) -> Path:
    """The official layout, 178 x 218 pixels each; MAFL's test image is the last."""
    for part in ("img_celeba", "Anno", "Eval"):
        (root / part).mkdir(parents=True)
    names = [f"{number:06d}.jpg" for number in range(1, COUNT + 2)]
    for number, name in enumerate(names):
        Image.fromarray(photograph(178, 218, number)).save(root / "img_celeba" / name, quality=95)
    landmarks = "\n".join(f"{name} 60 90 110 91 85 120 65 150 105 4" for name in names)
    boxes = "\n".join(f"{name} 20 20 140 180" for name in names)
    (root / "Anno/list_landmarks_celeba.txt").write_text(f"{len(names)}\n{' '.join(LANDMARK_COLUMNS)}\n{landmarks}\n")
    (root / "Anno/list_bbox_celeba.txt").write_text(f"{len(names)}\nimage_id {' '.join(BOX_COLUMNS)}\n{boxes}\n")
    (root / "testing.txt").write_text(f"{names[-1]}\n")
    return root


def clevr(root: Path) -> Path:
    """A folder of scenes as CLEVR renders them, 320 x 240 pixels, with one large and one outer thing."""
    for part in ("images", "masks", "scenes"):
        (root / part).mkdir(parents=True)
    kind = {"shape": "cube", "color": "red", "size": "large", "material": "metal"}
    mask = np.zeros((240, 320), np.uint8)
    mask[100:140, 150:190], mask[50:60, 5:15] = 1, 2
    for number in range(COUNT):
        Image.fromarray(photograph(320, 240, number)).save(root / "images" / f"{number}.jpg", quality=95)
        Image.fromarray(mask).save(root / "masks" / f"{number}.png")
        scene = [{**kind, "pixel": [170, 120, 9]}, {**kind, "pixel": [10, 55, 9]}]
        (root / "scenes" / f"{number}.json").write_text(json.dumps(scene))
    (root / "splits.json").write_text(json.dumps({"train": [str(number) for number in range(COUNT)]}))
    return root


def packed(root: Path) -> Path:
    root.mkdir()
    path = root / "train.h5"
    with PackedWriter(path, name="cells", provenance=Provenance(generator="test")) as writer:
        for number in range(COUNT):
            mask = np.zeros((72, 96), np.uint8)
            mask[30:40, 40:52] = 1
            points = np.array([[45.5, 34.5], [3.0, 70.0]], np.float32)
            boxes = np.array([[39.5, 29.5, 51.5, 39.5], [0, 68, 6, 71]], np.float32)
            writer.append(photograph(96, 72, number), Truth(points=points, boxes=boxes, mask=mask))
    return path


MAKERS = {"celeba": celeba, "clevr6": clevr, "folder": packed}
# Sizes that scale the pictures to whole pixels: 178 x 218 to 89 x 109, 320 x 240 to 64 x 48, 96 x 72 to 48 x 36.
WHOLE_SIZES = {"celeba": 89, "clevr6": 48, "folder": 36}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return {name: make(tmp_path / name) for name, make in MAKERS.items()}


def picture(name: str, source: Path, index: int, data: DataConfig) -> Picture:
    """The same image, as `tusk detect` reads it."""
    if name == "folder":
        pixels = photograph(96, 72, index)
        return Picture(pixels, 96, 72)
    file = source / (f"img_celeba/{index + 1:06d}.jpg" if name == "celeba" else f"images/{index}.jpg")
    return read_picture(file, smallest_side=Framing.of(data).smallest_side)


def opened(name: str, source: Path, data: DataConfig):
    return open_dataset(name, request_for(data, source=str(source), split="train", seed=4))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("settings", [{}, {"grey": True}, {"contrast": "full"}, {"contrast": "full", "grey": True}])
@pytest.mark.parametrize(("fit", "size"), [("letterbox", 40), ("letterbox", 57), ("pad", 328)])
def test_training_and_use_see_the_same_pixels(sources, name, settings, fit, size):
    data = DataConfig(dataset=name, source=sources[name], size=size, fit=fit, **settings)
    dataset = opened(name, sources[name], data)
    assert len(dataset) == COUNT
    for index in range(COUNT):
        used = fit_picture(picture(name, sources[name], index, data), "a", data, 8)
        np.testing.assert_array_equal(dataset.image(index), used.pixels)
        if settings.get("grey"):
            assert (used.pixels == used.pixels[:, :, :1]).all()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("fit", ["centre-crop", "random-crop"])
def test_the_crop_of_training_is_contained_in_the_frame_of_use(sources, name, fit):
    """At a size that scales the picture to whole pixels the same bytes; otherwise see `test_framing`."""
    data = DataConfig(dataset=name, source=sources[name], size=WHOLE_SIZES[name], fit=fit)
    dataset = opened(name, sources[name], data)
    for index in range(COUNT):
        whole = picture(name, sources[name], index, data)
        used = fit_picture(whole, "a", data, 8)
        trained = dataset.placement(index, whole.original_width, whole.original_height)
        left, top = used.frame.placement.to_network(trained.to_original([0, 0]))
        if fit == "centre-crop":
            assert (left, top) == (pytest.approx(round(left)), pytest.approx(round(top)))
            column, row, size = round(left), round(top), data.size
            within = used.pixels[row : row + size, column : column + size]
            np.testing.assert_array_equal(dataset.image(index), within)
        np.testing.assert_allclose(used.frame.placement.scale, trained.scale, rtol=1e-12)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("fit", ["letterbox", "centre-crop", "random-crop"])
def test_truth_goes_to_the_image_and_back(sources, name, fit):
    data = DataConfig(dataset=name, source=sources[name], size=40, fit=fit)
    dataset, own = opened(name, sources[name], data), open_dataset(name, Request(source=str(sources[name])))
    for index in range(COUNT):
        truth, before = dataset.truth(index), own.truth(index)
        height, width = own.image(index).shape[:2]
        placement = dataset.placement(index, width, height)
        np.testing.assert_allclose(placement.to_original(placement.to_network(before.points)), before.points, atol=1e-6)
        kept = ~np.isnan(truth.points).any(1)
        np.testing.assert_allclose(placement.to_original(truth.points[kept]), before.points[kept], atol=1e-4)
        corners = truth.boxes.reshape(-1, 2)
        np.testing.assert_allclose(placement.to_original(corners), before.boxes.reshape(-1, 2), atol=1e-4)
        # What is gone lies beyond the square that was taken.
        gone = before.points[~kept] + 0.5 - (placement.left, placement.top)
        assert ((gone < 0) | (gone >= (placement.width, placement.height))).any(1).all()
        if fit == "letterbox":
            assert kept.all()
        if truth.mask is not None:
            assert truth.mask.shape == (40, 40)
            rows, columns = np.nonzero(truth.mask == 1)
            np.testing.assert_allclose(truth.points[0], [columns.mean(), rows.mean()], atol=0.5)


@pytest.mark.parametrize(("size", "fit"), [(80, "centre-crop"), (64, "centre-crop"), (96, "letterbox"), (96, "pad")])
@pytest.mark.parametrize("name", ["digits", "tetrominoes"])
def test_square_images_are_scaled_as_a_whole_or_set_in_black(name, size, fit):
    """The slow, obvious way."""
    own = open_dataset(name, Request(count=2))
    framed = open_dataset(name, Request(count=2, size=size, fit=fit))
    for index in range(2):
        image = own.image(index)
        if fit == "pad":
            edge = (size - image.shape[0]) // 2
            expected = np.zeros((size, size, 3), np.uint8)
            expected[edge : edge + image.shape[0], edge : edge + image.shape[1]] = image
        else:
            expected = np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BICUBIC))
        np.testing.assert_array_equal(framed.image(index), expected)


@pytest.mark.parametrize("name", ["clevr6", "faces", "people"])
def test_what_is_drawn_at_the_size_is_left_as_it_is(name):
    own = open_dataset(name, Request(count=1, seed=2, size=96))
    np.testing.assert_array_equal(own.image(0), own.original.image(0))
    np.testing.assert_allclose(own.truth(0).points, own.original.truth(0).points)


def test_ready_made_images_are_one_tile_or_none(sources):
    one = opened("folder", sources["folder"], DataConfig(size=100, fit="tiles"))
    np.testing.assert_array_equal(one.image(0)[14:86, 2:98], photograph(96, 72, 0))
    halved = opened("folder", sources["folder"], DataConfig(size=48, fit="tiles", scale=0.5))
    assert halved.image(0).shape == (48, 48, 3)
    with pytest.raises(UsageError, match="4 tiles of 50 pixels would come out of 96x72"):
        opened("folder", sources["folder"], DataConfig(size=50, fit="tiles")).image(0)


def test_settings_without_effect_are_refused(sources):
    for dataset, source in (("digits", None), ("folder", sources["folder"]), ("clevr6", sources["clevr6"])):
        with pytest.raises(UsageError, match="ready-made"):
            check_data(DataConfig(dataset=dataset, source=source, fit="tiles"))
        check_data(DataConfig(dataset=dataset, source=source, contrast="full", grey=True, fit="letterbox"))
    with pytest.raises(UsageError, match=r"0\.5 has no effect with data\.fit 'pad'"):
        check_data(DataConfig(source=sources["celeba"], scale=0.5, fit="pad"))
    check_data(DataConfig(source=sources["celeba"], scale=0.5, fit="tiles"))
