from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tusk.data.dataset import Dataset
from tusk.data.datasets.h36m import (
    H36M,
    JOINT_DATASETS,
    JOINT_NAMES,
    LEFT_JOINTS,
    RIGHT_JOINTS,
    facing_away,
    swap_left_right,
)
from tusk.data.framing import Framed, Framing
from tusk.errors import DataError, UsageError

PATHS = (
    "S1/Walking/000001.png",
    "S11_Sitting/000002.png",
    "images/S9_Eating.60457274/000003.png",
    "s_05_act_02_ca_01/000004.png",
    "s_11_act_02_ca_03/000005.png",
)


def write(
    root: Path, paths: tuple[str, ...] = PATHS, width: int = 40, height: int = 60, masks: bool = False
) -> np.ndarray:
    """A folder of images that show one black 5x5 square each on red, centred on the joint of that image's number."""
    rng = np.random.default_rng(4)
    joints = rng.integers(8, 32, (len(paths), 32, 2)).astype(np.float64)
    for row, path in enumerate(paths):
        x, y = joints[row, row].astype(int)
        pixels = np.full((height, width, 3), (200, 0, 0), np.uint8)
        pixels[y - 2 : y + 3, x - 2 : x + 3] = 0
        mask = np.zeros((height, width), np.uint8)
        mask[y - 2 : y + 3, x - 2 : x + 3] = 1
        for folder, content in ((root, pixels), *(((root / "masks"), mask) for _ in range(masks))):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(content).save(folder / path)
    (root / "images.txt").write_text("\n".join(paths) + "\n")
    with h5py.File(root / "joints.h5", "w") as file:
        file["joints"] = joints
    return joints


def rewrite_joints(root: Path, name: str, values: np.ndarray) -> None:
    with h5py.File(root / "joints.h5", "w") as file:
        file[name] = values


def test_subjects_decide_the_split(tmp_path: Path) -> None:
    joints = write(tmp_path)
    train, test = H36M(tmp_path), H36M(tmp_path, "test")
    assert isinstance(train, Dataset)
    assert (len(train), len(test)) == (3, 2)
    assert train.class_names == JOINT_NAMES and len(set(JOINT_NAMES)) == 32
    for dataset, rows in ((train, (0, 2, 3)), (test, (1, 4))):
        for index, row in enumerate(rows):
            # 40x60 lies in the middle of 60x60.
            np.testing.assert_array_equal(dataset.truth(index).points, joints[row] + [10, 0])
            assert dataset.truth(index).mask is None
            np.testing.assert_array_equal(dataset.truth(index).classes, np.arange(32))


def test_points_stay_on_what_they_mark(tmp_path: Path) -> None:
    write(tmp_path)
    for size in (30, 112, 240):
        dataset = Framed(H36M(tmp_path), Framing(size))
        for index, row in enumerate((0, 2, 3)):
            image = dataset.image(index)
            assert image.shape == (size, size, 3) and image.dtype == np.uint8
            assert (image[:, 0] == 255).all(), "padding is white"
            dark = np.clip(160.0 - image[:, :, 0].astype(float), 0, None)  # without the ringing at edges
            dark[image[:, :, 1] > 0] = 0  # padding and its seam
            ys, xs = np.mgrid[:size, :size]
            centre = [(dark * xs).sum() / dark.sum(), (dark * ys).sum() / dark.sum()]
            np.testing.assert_allclose(dataset.truth(index).points[row], centre, atol=0.05)


def test_masks_make_the_background_white(tmp_path: Path) -> None:
    write(tmp_path, masks=True)
    dataset = H36M(tmp_path)
    image, truth = dataset.image(0), dataset.truth(0)
    x, y = truth.points[0].astype(int)
    expected = np.zeros((60, 60), np.uint8)
    expected[y - 2 : y + 3, x - 2 : x + 3] = 1
    np.testing.assert_array_equal(truth.mask, expected)
    np.testing.assert_array_equal(image[expected == 1], 0)
    np.testing.assert_array_equal(image[expected == 0], 255)


@pytest.mark.parametrize("name", JOINT_DATASETS)
def test_every_accepted_name_and_shape(tmp_path: Path, name: str) -> None:
    joints = write(tmp_path)
    rewrite_joints(tmp_path, name, joints)
    expected = H36M(tmp_path).truth(1).points
    rewrite_joints(tmp_path, name, joints.reshape(-1, 64).astype(np.int32))
    np.testing.assert_array_equal(H36M(tmp_path).truth(1).points, expected)


def standing(left_x: float, right_x: float) -> np.ndarray:
    points = np.random.default_rng(1).uniform(0, 100, (32, 2))
    points[LEFT_JOINTS, 0], points[RIGHT_JOINTS, 0] = left_x, right_x
    return points


def test_facing_rule() -> None:
    assert not facing_away(standing(left_x=60, right_x=40))
    assert facing_away(standing(left_x=40, right_x=60))
    assert not facing_away(standing(50, 50))
    # Hips apart by 10 one way, shoulders by 30 the other: the shoulders win; unknown ones do not count.
    points = standing(40, 50)
    points[17, 0], points[25, 0] = 70, 40
    assert not facing_away(points)
    points[17] = np.nan
    assert facing_away(points)
    with pytest.raises(ValueError, match="32"):
        facing_away(points[:17])


@given(st.integers(0, 10_000))
def test_swap_is_a_mirror_of_names(seed: int) -> None:
    points = np.random.default_rng(seed).uniform(0, 112, (3, 32, 2)).astype(np.float32)
    before = points.copy()
    always = swap_left_right(points, only_facing_away=False)
    for joint, name in enumerate(JOINT_NAMES):
        other = name.replace("Left", "L?").replace("Right", "Left").replace("L?", "Right")
        np.testing.assert_array_equal(always[:, joint], points[:, JOINT_NAMES.index(other)])
    np.testing.assert_array_equal(swap_left_right(always, only_facing_away=False), points)
    once = swap_left_right(points)
    for person, swapped, mirrored in zip(points, once, always, strict=True):
        np.testing.assert_array_equal(swapped, mirrored if facing_away(person) else person)
        assert not facing_away(swapped)
        np.testing.assert_array_equal(swap_left_right(person), swapped)
    np.testing.assert_array_equal(points, before)


def test_faults_are_named(tmp_path: Path) -> None:
    def fails(match: str, split: str = "train") -> None:
        with pytest.raises(DataError, match=match):
            H36M(tmp_path, split)

    fails("images.txt: does not exist")
    joints = write(tmp_path)
    rewrite_joints(tmp_path, "joints", joints[:-1])
    fails("joints for 4 images, but images.txt lists 5")
    rewrite_joints(tmp_path, "poses", joints)
    fails("no dataset named joints.*it has: poses")
    rewrite_joints(tmp_path, "joints", joints[:, :17])
    fails(r"shape \(5, 17, 2\)")
    rewrite_joints(tmp_path, "joints", np.full((5, 32, 2), b"x"))
    fails("not numbers")
    rewrite_joints(tmp_path, "joints/inner", joints)
    fails("no dataset named")
    (tmp_path / "joints.h5").write_bytes(b"not HDF5 at all")
    fails("cannot be read as HDF5")
    (tmp_path / "joints.h5").unlink()
    fails("holds no HDF5 file")
    write(tmp_path)
    (tmp_path / "more.hdf5").write_bytes(b"")
    fails("2 HDF5 files")
    (tmp_path / "more.hdf5").unlink()
    for name in ("S2/1.png", "walking/1.png", "S15/1.png", "xS1/1.png", "S110_a.png"):
        (tmp_path / "images.txt").write_text("\n".join((*PATHS[:4], name)))
        fails(f"image 5 .'{name}'. names none of the subjects")
    for name in ("../S1/1.png", "/S1/1.png", "S1\\..\\..\\1.png"):
        (tmp_path / "images.txt").write_text("\n".join((*PATHS[:4], name)))
        fails("image 5 .* outside the folder")
    (tmp_path / "images.txt").write_bytes(b"\xff\xfe\x00")
    fails("cannot be read as a text file")
    (tmp_path / "images.txt").write_text("\n".join(["S1/1.png"] * 5))
    fails("lists no image of the test subjects .S11", split="test")
    with pytest.raises(UsageError, match="did you mean 'train'"):
        H36M(tmp_path, "trian")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UsageError, match=r"h5py: is not installed.*'data' extra"):
        H36M(tmp_path)


def test_faults_of_single_images_are_named(tmp_path: Path) -> None:
    write(tmp_path, masks=True)
    dataset = H36M(tmp_path)
    Image.new("L", (7, 9), 1).save(tmp_path / "masks" / PATHS[0])
    for read in (dataset.image, dataset.truth):
        with pytest.raises(DataError, match="is 7x9, but its image is 40x60"):
            read(0)
    (tmp_path / "masks" / PATHS[0]).unlink()
    with pytest.raises(DataError, match="masks"):
        dataset.image(0)
    (tmp_path / PATHS[2]).write_bytes(b"")
    with pytest.raises(DataError, match="000003"):
        dataset.image(1)
    (tmp_path / PATHS[3]).unlink()
    with pytest.raises(DataError, match="000004"):
        dataset.truth(2)
