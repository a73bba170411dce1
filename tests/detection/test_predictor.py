"""Points land on the right pixels of the original, whatever the file, its size and how the model was trained."""

import numpy as np
import pytest
import torch
from PIL import Image

from tests.detection.bright import blob, bright_model, detect, shipped
from tusk.config import Config
from tusk.data.images import read_picture
from tusk.data.registry import Request, open_dataset
from tusk.detection.detections import Detections
from tusk.detection.predictor import Predictor
from tusk.errors import DataError, UsageError
from tusk.model.network import seeded_network
from tusk.model.storage import StoredModel

ALL = -np.inf  # no gain is too small


def untrained(**settings):
    small = {"width": 8, "levels": 2, "window": 7, **settings}
    config = Config.model_validate({"data": {"size": 32}, "model": small})
    return StoredModel(seeded_network(config.model, 0).eval(), config)


def grey_tiff(folder):
    Image.fromarray(blob(300, 200, 77, 140, 9, np.uint16)).save(folder / "deep.tif")
    return "deep.tif", 300, 200, (77, 140)


def cmyk_jpeg(folder):
    Image.fromarray(blob(240, 320, 30, 290, 12)).convert("CMYK").save(folder / "inks.jpg", quality=95)
    return "inks.jpg", 240, 320, (30, 290)


def exif_rotated(folder):
    """Orientation 6: the stored picture is to be turned clockwise, so that stored (x, y) is shown at (H-1-y, x)."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(blob(320, 240, 250, 60, 11)).save(folder / "turned.jpg", exif=exif, quality=95)
    return "turned.jpg", 240, 320, (239 - 60, 250)


def photograph(folder):
    Image.fromarray(blob(4000, 3000, 3100, 420, 140)).save(folder / "large.jpg", quality=90)
    return "large.jpg", 4000, 3000, (3100, 420)


def turned_photograph(folder):
    """Shrunk while it is decoded, to a size that does not divide evenly, and turned."""
    exif = Image.Exif()
    exif[0x0112] = 8
    Image.fromarray(blob(1999, 1501, 600, 1200, 80)).save(folder / "l8.jpg", exif=exif, quality=90)
    return "l8.jpg", 1501, 1999, (1200, 1998 - 600)


def icon(folder):
    Image.fromarray(blob(20, 20, 14, 5, 1.4)).save(folder / "icon.png")
    return "icon.png", 20, 20, (14, 5)


def moving_gif(folder):
    frames = [Image.fromarray(blob(160, 90, x, 40, 6)) for x in (40, 80, 120)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    return "moving.gif", 160, 90, (40, 40)


def unicode_name(folder):
    Image.fromarray(blob(90, 160, 70, 20, 5)).save(folder / "Größe пример 图 1.png")
    return "Größe пример 图 1.png", 90, 160, (70, 20)


SHEET = [grey_tiff, cmyk_jpeg, exif_rotated, photograph, turned_photograph, icon, moving_gif, unicode_name]


@pytest.mark.parametrize("write", SHEET)
@pytest.mark.parametrize("fit", ["letterbox", "centre-crop", "pad"])
def test_odd_files(tmp_path, write, fit):
    name, width, height, place = write(tmp_path)
    found = detect(bright_model(fit=fit, dataset="tetrominoes"), tmp_path / name, min_gain=ALL)
    assert isinstance(found, Detections) and len(found) == 1
    assert (found.width, found.height) == (width, height)
    assert found.source == str(tmp_path / name)
    scale = max(width, height) / 64  # a quarter of a network's pixel, wherever the resampling was coarsest
    np.testing.assert_allclose(found.xy[0], place, atol=0.25 * scale + 0.1)
    # and it is the bright pixel of what people see
    picture = read_picture(tmp_path / name)
    column, row = found.xy[0].round().astype(int)
    assert picture.pixels[row, column].min() >= 0.7 * picture.pixels.max()


def test_all_kinds_of_input_give_the_same(tmp_path):
    pixels = np.repeat(blob(96, 64, 70, 20, 4)[:, :, None], 3, 2)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    model = bright_model()
    inputs = [
        tmp_path / "a.png",
        str(tmp_path / "a.png"),
        pixels,
        pixels[:, :, 0],
        pixels / 255,
        np.dstack([pixels, np.full((64, 96), 255, np.uint8)]),
        Image.fromarray(pixels),
        Image.open(tmp_path / "a.png"),
        torch.from_numpy(pixels).permute(2, 0, 1),
        torch.from_numpy(pixels).permute(2, 0, 1) / 255,
        torch.from_numpy(pixels[:, :, 0]),
    ]
    alone = [detect(model, image, min_gain=ALL) for image in inputs]
    together = detect(model, inputs, min_gain=ALL)
    assert isinstance(together, list)
    for found in [*alone, *together]:
        np.testing.assert_allclose(found.xy, alone[0].xy, atol=1e-3)
    stacks = [
        np.stack([pixels] * 3),
        torch.from_numpy(pixels).permute(2, 0, 1).expand(3, -1, -1, -1),
        iter([pixels] * 3),
    ]
    assert [len(detect(model, stack)) for stack in stacks] == [3, 3, 3]
    assert detect(model, []) == []


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((3, 20, 20)), "shape"),
        (np.zeros((0, 20, 3)), "empty"),
        (torch.zeros(5, 20, 20), "shape"),
        (np.array([["a"]]), "shape"),
        ([7], "not a picture"),
        (7, "not a picture"),
        ("absent.png", "no such file"),
    ],
)
def test_what_is_no_picture_is_said(image, words):
    with pytest.raises(DataError, match=words):
        detect(bright_model(), image)


@pytest.mark.parametrize("options", [{"keypoints": 0}, {"min_score": 1.5}, {"min_score": np.nan}, {"min_gain": np.nan}])
def test_bad_options(options):
    with pytest.raises(UsageError):
        detect(bright_model(), np.zeros((20, 20), np.uint8), **options)


def test_mixed_sizes_keep_their_order_and_batches_do_not_matter():
    rng = np.random.default_rng(0)
    config = Config.model_validate(
        {"data": {"size": 32}, "model": {"keypoints": 4, "width": 8, "levels": 2, "window": 7}}
    )
    model = StoredModel(seeded_network(config.model, 0).eval(), config)
    images = [rng.integers(0, 256, (30 + 5 * (n % 3), 40, 3), dtype=np.uint8) for n in range(13)]
    alone = [detect(model, image) for image in images]
    for batch in (1, 3, 8):
        for one, found in zip(alone, Predictor(model, batch=batch).detect(images), strict=True):
            assert found.height == one.height
            np.testing.assert_allclose(found.xy, one.xy, atol=1e-3)
            np.testing.assert_allclose(found.gain, one.gain, atol=1e-3)


def test_more_keypoints_than_were_trained_and_more_than_there_are():
    config = Config.model_validate(
        {"data": {"size": 32}, "model": {"keypoints": 2, "width": 8, "levels": 2, "window": 7}}
    )
    model = StoredModel(seeded_network(config.model, 0).eval(), config)
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    two, many = (len(detect(model, image, keypoints, min_gain=ALL)) for keypoints in (2, 10_000))
    assert two == 2 < many < 64  # as many as there are peaks
    assert len(detect(model, np.zeros((5, 900), np.uint8), 30, min_gain=ALL)) >= 1  # a strip thinner than the network


@pytest.mark.parametrize("scale", [1, 3])
def test_the_shipped_model_finds_digits_in_a_larger_and_wider_picture(scale):
    digits = open_dataset("digits", Request(count=1))
    truth = digits.truth(0).points
    wide = np.zeros((80, 110, 3), np.uint8)
    wide[:, 20:100] = digits.image(0)
    large = np.asarray(Image.fromarray(wide).resize((110 * scale, 80 * scale), Image.Resampling.BICUBIC))
    found = detect(shipped("mnist-hard"), large)
    assert len(found) == 9
    expected = (truth + np.array([20.5, 0.5])) * scale - 0.5
    distance = np.linalg.norm(found.xy[:, None] - expected[None], axis=-1)
    assert distance.min(0).max() < 5 * scale


def test_a_point_in_the_bars_is_not_in_the_picture():
    """With nine keypoints some are found in the black bars, where nothing is."""
    model = bright_model(fit="letterbox")
    pixels = 255 - blob(128, 32, 60, 16, 30)
    fitted = np.zeros((64, 64), np.uint8)
    fitted[24:40] = np.asarray(Image.fromarray(pixels).resize((64, 16), Image.Resampling.BICUBIC))
    output = model.network(torch.from_numpy(fitted).expand(1, 3, 64, 64) / 255, 9, missing="empty")
    y = output.xy[0, output.found[0], 1]
    inside = int(((y > 23.5) & (y < 39.5)).sum())
    assert 0 < inside < len(y)
    found = detect(model, pixels, 9, min_gain=ALL)
    assert len(found) == inside
    assert ((found.xy >= 0) & (found.xy <= (127, 31))).all()
