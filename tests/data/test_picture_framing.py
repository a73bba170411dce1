"""The whole picture lies in the frame, at training's scale, and points find their way back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tusk.data.picture_framing import fit_picture, frame_for

from tusk.config import DataConfig
from tusk.data.folder import FolderDataset
from tusk.data.framing import place
from tusk.data.images import Picture

SIDES = st.integers(1, 6000)


@given(SIDES, SIDES, st.sampled_from(["letterbox", "centre-crop", "random-crop", "pad"]), st.sampled_from([8, 64, 130]))
def test_nothing_is_lost(width, height, fit, size):
    frame = frame_for(width, height, DataConfig(size=size, fit=fit, dataset="tetrominoes"), 8)
    placement = frame.placement
    assert (placement.left, placement.top, placement.width, placement.height) == (0, 0, width, height)
    assert placement.column >= 0 and placement.column + placement.columns <= frame.width
    assert placement.row >= 0 and placement.row + placement.rows <= frame.height
    assert min(frame.width, frame.height) >= 8 and max(frame.width, frame.height) <= 4 * size
    corners = np.array([[-0.5, -0.5], [width - 0.5, height - 0.5], [width / 3, height / 7]])
    np.testing.assert_allclose(placement.to_original(placement.to_network(corners)), corners, atol=1e-6)


@pytest.mark.parametrize("fit", ["letterbox", "centre-crop"])
@given(width=st.integers(40, 200), height=st.integers(40, 150))
def test_the_scale_is_that_of_training(fit, width, height):
    trained = place(width, height, 64, fit, np.random.default_rng(0))
    used = frame_for(width, height, DataConfig(size=64, fit=fit), 8).placement
    if max(width, height) <= 4 * min(width, height):
        np.testing.assert_allclose(used.scale, trained.scale, rtol=0.02)


def test_small_pictures_are_padded_as_in_training_and_folders_are_letterboxed():
    small = Picture(np.full((35, 31, 3), 200, np.uint8), 31, 35)
    padded = fit_picture(small, "a", DataConfig(size=40, fit="pad", dataset="tetrominoes"), 8)
    assert padded.pixels.shape == (40, 40, 3)
    assert (padded.pixels[2:37, 4:35] == 200).all() and padded.pixels.sum() == small.pixels.sum()
    boxed = fit_picture(small, "a", DataConfig(size=40, fit="pad", dataset="folder"), 8)
    assert (boxed.frame.placement.rows, boxed.frame.placement.columns) == (40, 35)


def test_grey():
    colour = Picture(np.tile(np.array([255, 0, 0], np.uint8), (20, 20, 1)), 20, 20)
    pixels = fit_picture(colour, "a", DataConfig(size=20, grey=True), 8).pixels
    assert pixels.shape == (20, 20, 3) and (pixels == pixels[:, :, :1]).all()


@given(SIDES, SIDES, st.sampled_from([0.25, 1.0, 3.0]))
def test_pieces_keep_the_pictures_scale_and_are_never_cut_short(width, height, scale):
    frame = frame_for(width, height, DataConfig(size=64, fit="tiles", scale=scale), 8)
    placement = frame.placement
    assert (placement.left, placement.top, placement.width, placement.height) == (0, 0, width, height)
    assert frame.width == max(64, placement.columns) and frame.height == max(64, placement.rows)
    assert abs(placement.columns - width * scale) <= 1 and abs(placement.rows - height * scale) <= 1


def test_full_contrast_as_in_training(tmp_path):
    pixels = np.random.default_rng(0).integers(40, 90, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    trained = FolderDataset(tmp_path, size=32, contrast="full", cache_dir=tmp_path / "cache").image(0)
    used = fit_picture(Picture(pixels, 32, 32), "a", DataConfig(size=32, contrast="full"), 8).pixels
    np.testing.assert_array_equal(used, trained)
    assert used.min() == 0 and used.max() == 255
