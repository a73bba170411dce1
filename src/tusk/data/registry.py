"""Every dataset by its name: what it is, where it comes from, how to open it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tusk.config import DataConfig
from tusk.data.dataset import Dataset
from tusk.data.tones import Contrast
from tusk.errors import DataError, UsageError, nearest

Fit = Literal["letterbox", "centre-crop", "random-crop", "pad", "tiles"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    """Which images of a dataset."""

    source: str | None = None  # folder, file, glob or list with the originals; None where tusk makes the images
    split: str = "train"
    size: int | None = None  # side of the square images; None for the dataset's own
    count: int | None = None  # how many to make; None for the dataset's own number
    seed: int = 0
    fit: Fit = "centre-crop"
    scale: float = 1.0  # of pictures that are cut into pieces
    contrast: Contrast = "own"
    grey: bool = False
    progress: Progress | None = None  # called with images done and images in all while a folder is read


def request_for(data: DataConfig, *, source: str | None, split: str, seed: int) -> Request:
    """Images that come to the network as the settings say."""
    return Request(
        source=source,
        split=split,
        size=data.size,
        seed=seed,
        fit=data.fit,
        scale=data.scale,
        contrast=data.contrast,
        grey=data.grey,
    )


@dataclass(frozen=True)
class Entry:
    """One dataset that tusk knows by name."""

    name: str
    summary: str
    origin: str  # where its images come from, in words
    made: bool  # tusk can make it from nothing
    open: Callable[[Request], Dataset]
    scattered: bool = False  # things lie anywhere: a piece of an image is as good as a whole one


def register(entry: Entry) -> None:
    """Add a dataset; a name that is taken is refused."""
    if entry.name in DATASETS:
        raise UsageError(f"dataset '{entry.name}'", "there is one of that name already", "choose another name")
    DATASETS[entry.name] = entry


def open_dataset(name: str, request: Request) -> Dataset:
    """The dataset of that name, at the size that is asked for."""
    if name not in DATASETS:
        raise UsageError(f"dataset '{name}'", "there is no such dataset", nearest(name, DATASETS))
    dataset = _open_packed(request) if is_packed(request.source) else DATASETS[name].open(request)
    if request.count is not None and request.count < len(dataset):
        dataset = First(dataset, request.count)
    if request.size is None or len(dataset) == 0 or dataset.image(0).shape[:2] == (request.size, request.size):
        return dataset
    from tusk.data.fitted import Fitted

    return Fitted(dataset, request.size, "pad" if request.fit == "pad" else "scale")


class First:
    """The first images of a dataset."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        self._dataset, self._count = dataset, count
        self.name, self.class_names = dataset.name, dataset.class_names
        self.image, self.truth = dataset.image, dataset.truth

    def __len__(self) -> int:
        return self._count


def _digits(request: Request) -> Dataset:
    from tusk.data.datasets.digits import Digits

    return Digits(split=_half(request), count=request.count or 50_000, seed=request.seed)


def _mnist_hard(request: Request) -> Dataset:
    from tusk.data.datasets.mnist import MnistHard
    from tusk.data.datasets.mnist_authors import MnistHardReleased, is_released_layout
    from tusk.data.fetch import default_data_dir

    folder = default_data_dir() / "mnist" if request.source is None else Path(request.source)
    if request.source is None and not folder.is_dir():
        raise DataError("mnist-hard", f"MNIST is not in {folder}", "run 'tusk data get mnist', or name its folder")
    if is_released_layout(folder):
        return MnistHardReleased(folder, split=_half(request))
    return MnistHard(folder, split=_half(request), count=request.count or 50_000, seed=request.seed)


def _tetrominoes(request: Request) -> Dataset:
    from tusk.data.datasets.tetrominoes import Tetrominoes, read_tetrominoes

    if request.source is None:
        return Tetrominoes(split=_half(request), count=request.count, seed=request.seed)
    return read_tetrominoes(Path(request.source), _half(request))


def _clevr(request: Request, split: str, most: int) -> Dataset:
    from tusk.data.datasets.clevr_made import ClevrMade
    from tusk.data.datasets.clevr_original import read_clevr
    from tusk.data.datasets.clevr_scenes import ClevrScenes

    size = request.size or 128
    if request.source is None:
        fewest = 3 if most <= 6 else 7
        count = request.count or (50_000 if request.split == "train" else 10_000)
        return ClevrMade(
            split=_half(request), count=count, seed=request.seed, size=size, min_objects=fewest, max_objects=most
        )
    source = Path(request.source)
    if source.is_dir():
        return ClevrScenes(source, split=split, size=request.size)
    return read_clevr(source, split, size=size)


def _clevr6(request: Request) -> Dataset:
    return _clevr(request, request.split, 6)


def _clevr10(request: Request) -> Dataset:
    return _clevr(request, "clevr10", 10)


def _celeba(request: Request) -> Dataset:
    from tusk.data.datasets.celeba import CelebA

    folder = _needs_source("celeba", "the official in-the-wild release", "faces", request)
    split = "mafl-test" if request.split == "test" else request.split
    return CelebA(folder, split=split, size=request.size or 80)


def _mtfl(request: Request) -> Dataset:
    from tusk.data.datasets.mtfl import Mtfl

    return Mtfl(_needs_source("mtfl", "the folder with landmarks.csv", "faces", request), split=request.split)


def _faces(request: Request) -> Dataset:
    from tusk.data.datasets.faces import Faces

    return Faces(split=_half(request), count=request.count or 50_000, seed=request.seed, size=request.size or 80)


def _h36m(request: Request) -> Dataset:
    from tusk.data.datasets.h36m import H36M

    folder = _needs_source("h36m", "the preprocessed images and joints", "people", request)
    return H36M(folder, split=request.split, size=request.size or 112)


def _people(request: Request) -> Dataset:
    from tusk.data.datasets.people import People

    return People(split=_half(request), count=request.count or 50_000, seed=request.seed, size=request.size or 112)


def _folder(request: Request) -> Dataset:
    from tusk.data.folder import FolderDataset

    if request.source is None:
        raise UsageError("data.source", "no pictures were named", "give a folder, a file, a pattern or a list of files")
    fit = "letterbox" if request.fit == "pad" else request.fit
    return FolderDataset(
        request.source,
        size=request.size or 80,
        fit=fit,
        scale=request.scale,
        contrast=request.contrast,
        grey=request.grey,
        seed=request.seed,
        progress=request.progress,
    )


def _open_packed(request: Request) -> Dataset:
    from tusk.data.packed import PackedDataset

    return PackedDataset(Path(str(request.source)))


def is_packed(source: str | None) -> bool:
    return source is not None and Path(source).suffix in (".h5", ".hdf5") and Path(source).is_file()


def _half(request: Request) -> Literal["train", "test"]:
    """The split of a dataset that has just the two."""
    if request.split not in ("train", "test"):
        hint = nearest(request.split, ("train", "test"))
        raise UsageError(f"split '{request.split}'", "there is no such split", hint)
    return "train" if request.split == "train" else "test"


def _needs_source(name: str, what: str, instead: str, request: Request) -> Path:
    if request.source is None:
        raise UsageError(name, f"it needs {what}", f"name the folder, or use '{instead}', which tusk makes itself")
    return Path(request.source)


DATASETS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("folder", "your own pictures", "a folder, file, glob or list", False, _folder),
        Entry(
            "digits",
            "nine small handwritten digits on a canvas",
            "made from scikit-learn's digits",
            True,
            _digits,
            scattered=True,
        ),
        Entry(
            "mnist-hard",
            "nine MNIST digits on a canvas",
            "'tusk data get mnist', or your own files",
            True,
            _mnist_hard,
            scattered=True,
        ),
        Entry(
            "tetrominoes", "three coloured pieces on black", "made, or the original TFRecord file", True, _tetrominoes
        ),
        Entry("clevr6", "scenes of 3 to 6 solids", "made, a scenes folder, or the TFRecord file", True, _clevr6),
        Entry("clevr10", "scenes of up to 10 solids", "made, a scenes folder, or the TFRecord file", True, _clevr10),
        Entry("celeba", "faces in the wild, 5 landmarks", "the official release", False, _celeba),
        Entry("mtfl", "small faces in the wild, 5 landmarks", "a folder with landmarks.csv", False, _mtfl),
        Entry("faces", "drawn faces, 5 landmarks", "made", True, _faces),
        Entry("h36m", "people, 32 joints", "preprocessed Human3.6M", False, _h36m),
        Entry("people", "posed 3D figures, 32 joints", "made", True, _people),
    )
}
