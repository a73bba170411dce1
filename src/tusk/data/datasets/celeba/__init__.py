"""CelebA in the wild: whole photographs, face boxes and five landmarks, in the layout of the official release.

    img_celeba/ or Img/img_celeba/       000001.jpg ...
    Anno/list_landmarks_celeba.txt       count, names, then: file and ten integers
    Anno/list_bbox_celeba.txt            count, names, then: file x_1 y_1 width height
    Eval/list_eval_partition.txt         file and 0 (train), 1 (valid) or 2 (test)
    training.txt, testing.txt            MAFL: one file a line; in the folder itself, in MAFL/ or in Eval/

Images whose face box covers less than `min_face` of the picture are left out of every split, MAFL's included.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tusk.data.dataset import Dataset, Float32Array, Int64Array, Truth, UInt8Array
from tusk.data.datasets.celeba.index import image_sizes
from tusk.data.datasets.celeba.lists import read_names, read_partition, read_table
from tusk.data.images import read_image
from tusk.data.registry import Entry, Request, register
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.errors import DataError, UsageError, nearest

SPLITS = ("train", "mafl-train", "mafl-test", "official-train", "official-valid", "official-test")
LANDMARK_COLUMNS = tuple(
    f"{part}_{axis}" for part in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"
)
BOX_COLUMNS = ("x_1", "y_1", "width", "height")


class CelebA:
    """Photographs as they are, and the truth in their pixels.

    train: every image but those of MAFL's test set; mafl-train: to fit the landmarks; mafl-test: to score them.

    official-train, official-valid, official-test: CelebA's own partition, the first two without MAFL's test images.
    """

    def __init__(
        self,
        folder: str | Path,
        split: str = "train",
        min_face: float = 0.3,
        cache: str | Path | None = None,
    ) -> None:
        if split not in SPLITS:
            raise UsageError(f"split '{split}'", "is not a split of CelebA", nearest(split, SPLITS))
        if not 0 <= min_face <= 1:
            raise UsageError(f"min_face {min_face}", "is not a share of the image", "give a number from 0 to 1")
        folder = Path(folder).absolute()
        self._images = _image_folder(folder)
        landmark_file = folder / "Anno" / "list_landmarks_celeba.txt"
        names, landmarks = read_table(landmark_file, LANDMARK_COLUMNS)
        box_file = folder / "Anno" / "list_bbox_celeba.txt"
        boxes = _matched(box_file, names, *read_table(box_file, BOX_COLUMNS))
        chosen = _choose(folder, split, names)
        sizes = image_sizes(self._images, [names[i] for i in chosen], None if cache is None else Path(cache))
        boxes, landmarks = boxes[chosen], landmarks[chosen]
        large = boxes[:, 2] * boxes[:, 3] >= min_face * sizes[:, 0] * sizes[:, 1]
        kept = np.nonzero(large)[0]
        if not len(kept):
            why = f"no image of the split '{split}' has a face of at least {min_face:.0%} of the picture"
            raise DataError(str(folder), why, "lower min_face, or check that the folder is complete")
        self._names: list[str] = [names[chosen[i]] for i in kept]
        self._points: Float32Array = landmarks[kept].reshape(-1, len(LANDMARKS), 2).astype(np.float32)
        corners = np.concatenate([boxes[kept, :2], boxes[kept, :2] + boxes[kept, 2:]], axis=1)
        # The edges of a pixel lie half a pixel from its centre.
        self._boxes: Float32Array = (corners - 0.5).astype(np.float32)

    @property
    def name(self) -> str:
        return "celeba"

    @property
    def class_names(self) -> tuple[str, ...]:
        return LANDMARKS

    @property
    def files(self) -> list[str]:
        """The file names of the images, in order."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def image(self, index: int) -> UInt8Array:
        return read_image(self.picture_file(index))

    def picture_file(self, index: int) -> Path:
        self._check(index)
        return self._images / self._names[index]

    def truth(self, index: int) -> Truth:
        self._check(index)
        return Truth(
            points=self._points[index].copy(),
            boxes=self._boxes[index : index + 1].copy(),
            classes=np.arange(len(LANDMARKS), dtype=np.int64),
        )

    def _check(self, index: int) -> None:
        # Not Python's counting from the end: index -1 is a mistake in every dataset.
        if not 0 <= index < len(self):
            raise IndexError(f"image {index} of {len(self)}")


def _image_folder(folder: Path) -> Path:
    for images in (folder / "img_celeba", folder / "Img" / "img_celeba"):
        if images.is_dir():
            return images
    fix = "unpack CelebA's in-the-wild images there (the aligned ones, img_align_celeba, have other landmarks)"
    raise DataError(str(folder), "has neither img_celeba nor Img/img_celeba", fix)


def _matched(path: Path, names: list[str], box_names: list[str], boxes: Int64Array) -> Int64Array:
    """The boxes in the order of the landmarks' file."""
    if box_names == names:
        return boxes
    place = {name: i for i, name in enumerate(box_names)}
    missing = next((name for name in names if name not in place), None)
    if missing is not None or len(box_names) != len(names):
        detail = f"has no box for {missing}" if missing else f"has {len(box_names)} boxes for {len(names)} landmarks"
        raise DataError(str(path), detail, "take both files of Anno/ from the same release")
    return boxes[[place[name] for name in names]]


def _choose(folder: Path, split: str, names: list[str]) -> Int64Array:
    """Which of the names belong to the split, before the filter."""
    place = {name: i for i, name in enumerate(names)}
    # Looked for whatever the split: without it nothing keeps the images that score a model out of its training.
    tested = read_names(_mafl(folder, "testing.txt"), place)
    if split == "mafl-test":
        return np.array([place[name] for name in tested], np.int64)
    if split == "mafl-train":
        trained = read_names(_mafl(folder, "training.txt"), place)
        both = set(tested).intersection(trained)
        if both:
            detail = f"names {min(both)}, which is also in testing.txt"
            raise DataError(str(_mafl(folder, "training.txt")), detail, "take both lists from the same release of MAFL")
        return np.array([place[name] for name in trained], np.int64)
    allowed = np.ones(len(names), bool)
    if split != "official-test":
        allowed[[place[name] for name in tested]] = False
    if split != "train":
        part = ("official-train", "official-valid", "official-test").index(split)
        allowed &= read_partition(folder / "Eval" / "list_eval_partition.txt", place) == part
    return np.nonzero(allowed)[0].astype(np.int64)


def _mafl(folder: Path, file: str) -> Path:
    places = [folder / file, folder / "MAFL" / file, folder / "Eval" / file]
    for path in places:
        if path.is_file():
            return path
    raise DataError(str(places[0]), "does not exist, nor in MAFL/ or Eval/", f"put MAFL's {file} into one of them")


def _open(request: Request) -> Dataset:
    folder = request.folder("celeba", "the official in-the-wild release", "faces")
    return CelebA(folder, split="mafl-test" if request.split == "test" else request.split)


register(Entry("celeba", "faces in the wild, 5 landmarks", "the official release", False, _open))
