"""Human3.6M, preprocessed as is customary for landmark work: people cut out, cropped, 32 joints per image.

A folder holds
    images.txt  one relative image path per line, naming the subject: `S1/...`, `S9_Walking/...`, `s_11_act_02/...`
    joints.h5   any one HDF5 file; its joints are (N, 32, 2) or (N, 64) under one of `JOINT_DATASETS`, row i for
                line i, x and y in pixels of the image as stored, (0, 0) being the centre of its top-left pixel
    masks/      optional: the same relative paths, ending in .png; what is zero there is made white

Without masks the background is taken to be white already. Images that are not square are padded with white to squares.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from tusk.data.dataset import Dataset, Float32Array, Int64Array, Truth, UInt8Array
from tusk.data.images import image_size, read_image
from tusk.data.registry import Entry, Request, register
from tusk.errors import DataError, UsageError, nearest

TRAIN_SUBJECTS = (1, 5, 6, 7, 8, 9)
TEST_SUBJECTS = (11,)
SPLITS = {"train": TRAIN_SUBJECTS, "test": TEST_SUBJECTS}
JOINT_DATASETS = ("joints", "keypoints", "landmarks", "points", "pose/2d")
HDF5_ENDINGS = (".h5", ".hdf5")

# The order of the motion-capture skeleton. Some joints always coincide with another one (Spine with Hips, both
# Shoulders with Neck, Thumb with Hand, WristSite with WristEnd); a Site is the free end of a bone.
JOINT_NAMES = (
    *("Hips", "RightUpLeg", "RightLeg", "RightFoot", "RightToeBase", "RightToeSite"),
    *("LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToeBase", "LeftToeSite"),
    *("Spine", "Spine1", "Neck", "Head", "HeadSite"),
    *(
        "LeftShoulder",
        "LeftArm",
        "LeftForeArm",
        "LeftHand",
        "LeftThumb",
        "LeftThumbSite",
        "LeftWristEnd",
        "LeftWristSite",
    ),
    *("RightShoulder", "RightArm", "RightForeArm", "RightHand"),
    *("RightThumb", "RightThumbSite", "RightWristEnd", "RightWristSite"),
)
LEFT_JOINTS = np.array([6, 7, 8, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23])
RIGHT_JOINTS = np.array([1, 2, 3, 4, 5, 24, 25, 26, 27, 28, 29, 30, 31])
# The pairs that tell front from back: both hips and both upper arms, which no pose can bring across one another.
LEFT_OF_TRUNK, RIGHT_OF_TRUNK = np.array([6, 17]), np.array([1, 25])

_SUBJECT = re.compile(r"(?:^|[/_])[sS]_?0?(\d{1,2})(?=[/_.]|$)")


def facing_away(points: npt.NDArray[np.floating]) -> bool:
    """Whether the person with these (32, 2) joints shows the camera their back.

    Somebody who faces the camera has their left on the right of the image. So: sum (left x - right x) over hips and
    shoulders; below zero means facing away. Exactly side-on counts as facing; pairs with an unknown joint are left out.
    """
    if points.shape != (len(JOINT_NAMES), 2):
        raise ValueError(f"expected (32, 2) joints, got {points.shape}")
    return bool(np.nansum(points[LEFT_OF_TRUNK, 0] - points[RIGHT_OF_TRUNK, 0]) < 0)


def swap_left_right(points: npt.NDArray[np.floating], only_facing_away: bool = True) -> Float32Array:
    """(32, 2) or (N, 32, 2) joints with left and right exchanged: where the person faces away, or everywhere.

    Front and back look alike, so unsupervised points cannot tell left from right; the customary protocol names the
    sides as the viewer sees them. After it the left hip and shoulder of every person are on the right of the image.
    """
    swapped = np.array(points, dtype=np.float32)
    for person in swapped.reshape(-1, len(JOINT_NAMES), 2):  # views: writing here fills `swapped`
        if not only_facing_away or facing_away(person):
            person[LEFT_JOINTS], person[RIGHT_JOINTS] = person[RIGHT_JOINTS], person[LEFT_JOINTS]
    return swapped


class _Square(NamedTuple):
    """How a stored image of some width and height lies in the square that it is padded to."""

    side: int
    left: int
    top: int

    @classmethod
    def around(cls, width: int, height: int) -> _Square:
        side = max(width, height)
        return cls(side, (side - width) // 2, (side - height) // 2)


class H36M:
    """One split of a preprocessed Human3.6M folder: subjects 1, 5, 6, 7, 8, 9 to train on, 11 to test on."""

    name = "h36m"
    class_names = JOINT_NAMES

    def __init__(self, root: str | Path, split: str = "train", image_list: str = "images.txt") -> None:
        if split not in SPLITS:
            raise UsageError(f"split '{split}'", "is not part of h36m", nearest(split, SPLITS))
        self.root, self.split = Path(root), split
        self._masks = self.root / "masks"
        paths = _read_list(self.root / image_list)
        chosen = [row for row, path in enumerate(paths) if _subject(path, row, self.root / image_list) in SPLITS[split]]
        joints_file = _joints_file(self.root)
        joints = _read_joints(joints_file)
        if len(joints) != len(paths):
            why = f"has joints for {len(joints)} images, but {image_list} lists {len(paths)}"
            raise DataError(str(joints_file), why, "list exactly the images that the joints belong to, in their order")
        if not chosen:
            subjects = ", ".join(f"S{number}" for number in SPLITS[split])
            why = f"lists no image of the {split} subjects ({subjects})"
            raise DataError(str(self.root / image_list), why, "add them or choose the other split")
        self._paths = [paths[row] for row in chosen]
        self._joints = joints[np.array(chosen)]

    def __len__(self) -> int:
        return len(self._paths)

    def image(self, index: int) -> UInt8Array:
        """(side, side, 3): the person on white."""
        pixels = read_image(self.root / self._paths[index])
        if self._masks.is_dir():
            person = self._stored_mask(index, pixels.shape[:2])
            pixels = np.where(person[:, :, None], pixels, np.uint8(255))
        square = _Square.around(pixels.shape[1], pixels.shape[0])
        canvas = Image.new("RGB", (square.side, square.side), (255, 255, 255))
        canvas.paste(Image.fromarray(pixels), (square.left, square.top))
        return np.array(canvas)

    def truth(self, index: int) -> Truth:
        """The 32 joints, sides as the person has them (see `swap_left_right`), and the mask where there are masks."""
        width, height = image_size(self.root / self._paths[index])
        square = _Square.around(width, height)
        points = self._joints[index] + (square.left, square.top)
        classes: Int64Array = np.arange(len(JOINT_NAMES), dtype=np.int64)
        return Truth(points=points.astype(np.float32), classes=classes, mask=self._mask(index, (height, width), square))

    def _mask(self, index: int, shape: tuple[int, int], square: _Square) -> UInt8Array | None:
        if not self._masks.is_dir():
            return None
        mask = np.zeros((square.side, square.side), np.uint8)
        height, width = shape
        mask[square.top : square.top + height, square.left : square.left + width] = self._stored_mask(index, shape)
        return mask

    def _stored_mask(self, index: int, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        path = (self._masks / self._paths[index]).with_suffix(".png")
        mask: npt.NDArray[np.bool_] = read_image(path).max(axis=2) > 0
        if mask.shape != shape:
            why = f"is {mask.shape[1]}x{mask.shape[0]}, but its image is {shape[1]}x{shape[0]}"
            raise DataError(str(path), why, "make the masks from the images as they are stored")
        return mask


def _read_list(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataError(str(path), "does not exist", "give a folder with an image list, one path per line") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be read as a text file ({error})", "write it anew as UTF-8") from error
    paths = [line.strip().replace("\\", "/") for line in lines if line.strip()]
    for row, name in enumerate(paths):
        # A list is data: it must not lead out of its folder.
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise DataError(
                str(path), f"image {row + 1} ('{name}') lies outside the folder", "list relative paths only"
            )
    return paths


def _subject(name: str, row: int, path: Path) -> int:
    found = _SUBJECT.search(name)
    if found is None or int(found.group(1)) not in TRAIN_SUBJECTS + TEST_SUBJECTS:
        why = f"image {row + 1} ('{name}') names none of the subjects S1, S5, S6, S7, S8, S9, S11"
        raise DataError(str(path), why, "begin each path with the subject, as in 'S1/...' or 'S9_...'")
    return int(found.group(1))


def _joints_file(root: Path) -> Path:
    files = sorted(path for path in root.iterdir() if path.suffix in HDF5_ENDINGS)
    if len(files) != 1:
        names = ", ".join(path.name for path in files)
        why = f"holds {len(files)} HDF5 files ({names}), not one" if files else "holds no HDF5 file (.h5, .hdf5)"
        raise DataError(str(root), why, "put exactly one file of joints beside the image list")
    return files[0]


def _read_joints(path: Path) -> npt.NDArray[np.float64]:
    try:
        import h5py
    except ImportError:
        fix = "install tusk with its 'data' extra: pip install 'tusk-keypoints[data]'"
        raise UsageError("h5py", "is not installed", fix) from None
    try:
        with h5py.File(path, "r") as file:
            name = next((name for name in JOINT_DATASETS if isinstance(file.get(name), h5py.Dataset)), None)
            if name is None:
                why = f"has no dataset named {', '.join(JOINT_DATASETS)}"
                raise DataError(str(path), why, f"rename its joints (it has: {', '.join(file) or 'nothing'})")
            values = np.asarray(file[name][()])
    except OSError as error:
        raise DataError(str(path), f"cannot be read as HDF5 ({error})", "copy or download it anew") from error
    count = len(JOINT_NAMES)
    if (
        values.dtype.kind not in "fiu"
        or values.ndim not in (2, 3)
        or values.shape[1:] not in ((count, 2), (2 * count,))
    ):
        why = f"dataset '{name}' is {values.dtype} of shape {values.shape}, not numbers of shape (N, 32, 2) or (N, 64)"
        raise DataError(str(path), why, "store x and y of all 32 joints for each image")
    return values.reshape(len(values), count, 2).astype(np.float64)


def _open(request: Request) -> Dataset:
    return H36M(request.folder("h36m", "the preprocessed images and joints", "people"), split=request.split)


register(Entry("h36m", "people, 32 joints", "preprocessed Human3.6M", False, _open))
