"""Every dataset by its name. A dataset is one file in `data/datasets/`, or a module anywhere, that calls `register`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tusk.config import DataConfig
from tusk.config.data import Contrast, Fit, Frames
from tusk.data import datasets
from tusk.data.dataset import Dataset
from tusk.errors import UsageError, nearest

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    """Which images of a dataset."""

    source: str | None = None  # folder, file, glob or list with the originals; None where tusk makes the images
    split: str = "train"
    size: int | None = None  # side of the square images; None for the dataset's own images, as they are
    count: int | None = None  # how many to make; None for the dataset's own number
    seed: int = 0
    fit: Fit = "centre-crop"
    scale: float = 1.0  # of pictures that are cut into tiles
    contrast: Contrast = "own"
    grey: bool = False
    frames: Frames = "first"
    more: tuple[str, ...] = ()  # further sources beside the first, where the images are pictures
    progress: Progress | None = None  # called with images done and images in all while a folder is read

    @property
    def half(self) -> Literal["train", "test"]:
        """The split of a dataset that has just the two."""
        if self.split not in ("train", "test"):
            hint = nearest(self.split, ("train", "test"))
            raise UsageError(f"split '{self.split}'", "there is no such split", hint)
        return "train" if self.split == "train" else "test"

    def folder(self, name: str, what: str, instead: str) -> Path:
        """The source, for a dataset that cannot do without."""
        if self.source is None:
            raise UsageError(name, f"it needs {what}", f"name the folder, or use '{instead}', which tusk makes itself")
        return Path(self.source)


def request_for(data: DataConfig, *, source: str | tuple[str, ...] | None, split: str, seed: int) -> Request:
    """Images that come to the network as the settings say."""
    first, *more = (source,) if source is None or isinstance(source, str) else source or (None,)
    return Request(
        source=first,
        more=tuple(more),
        frames=data.frames,
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
    """One dataset that tusk knows by name.

    `open` gives its images as they are, of any size, or drawn at the request's size; `open_dataset` frames them.
    """

    name: str
    summary: str
    origin: str  # where its images come from, in words
    made: bool  # tusk can make it from nothing
    open: Callable[[Request], Dataset]
    scattered: bool = False  # things lie anywhere: a tile of an image is as good as a whole one
    framed: bool = False  # `open` frames the images itself


class _Registry(Mapping[str, Entry]):
    """Name -> dataset. The files in `data/datasets/` are imported, and register themselves, when it is first read."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._complete = False

    def add(self, entry: Entry) -> None:
        # Our own files register while they are being imported; for all others our names come first.
        if not str(getattr(entry.open, "__module__", "")).startswith(f"{datasets.__name__}."):
            self._import_own()
        if entry.name in self._entries:
            raise UsageError(f"dataset '{entry.name}'", "there is one of that name already", "choose another name")
        self._entries[entry.name] = entry

    def __getitem__(self, name: str) -> Entry:
        self._import_own()
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._import_own()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._import_own()
        return len(self._entries)

    def _import_own(self) -> None:
        if not self._complete:
            self._complete = True
            for module in pkgutil.iter_modules(datasets.__path__):
                importlib.import_module(f"{datasets.__name__}.{module.name}")


DATASETS = _Registry()


def register(entry: Entry) -> None:
    """Make a dataset known by its name; a name that is taken is refused."""
    DATASETS.add(entry)


def list_datasets() -> list[str]:
    """The names of all datasets, in order."""
    return list(DATASETS)


def open_dataset(name: str, request: Request) -> Dataset:
    """The dataset of that name, framed to the size that is asked for."""
    if name not in DATASETS:
        raise UsageError(f"dataset '{name}'", "there is no such dataset", nearest(name, DATASETS))
    if request.source == "":
        raise UsageError("source", "it is an empty text", "name a file or folder")
    packed = is_packed(request.source)
    if request.more and (packed or not DATASETS[name].framed):
        what = "packed files are" if packed else f"the originals of '{name}' are"
        why = f"{1 + len(request.more)} sources were named, but {what} opened one at a time"
        raise UsageError(str(request.source), why, "name one")
    dataset = _open_packed(request) if packed else DATASETS[name].open(request)
    if request.size is not None and (packed or not DATASETS[name].framed):
        from tusk.data.framing import Framed, Framing

        framing = Framing(request.size, request.fit, request.scale, request.contrast, request.grey)
        dataset = Framed(dataset, framing, request.seed)
    if request.count is not None and request.count < len(dataset):
        dataset = First(dataset, request.count)
    return dataset


class First:
    """The first images of a dataset."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        self.original, self._count = dataset, count
        self.name, self.class_names = dataset.name, dataset.class_names
        self.image, self.truth = dataset.image, dataset.truth

    def __len__(self) -> int:
        return self._count


def check_data(data: DataConfig) -> None:
    """Refuse settings that would have no effect on these images."""
    pictures = data.dataset in DATASETS and DATASETS[data.dataset].framed
    ready_made = not pictures or any(map(is_packed, data.sources))
    if data.fit == "tiles" and ready_made:
        raise UsageError("data.fit", "'tiles' is for picture files, and these images are ready-made", "leave it out")
    if data.frames == "all" and ready_made:
        raise UsageError("data.frames", "'all' is for picture files, and these images are ready-made", "leave it out")
    if data.scale != 1 and data.fit != "tiles":
        why = f"{data.scale:g} has no effect with data.fit '{data.fit}', which scales by itself"
        raise UsageError("data.scale", why, "leave it out, or set data.fit to 'tiles'")


def _open_packed(request: Request) -> Dataset:
    from tusk.data.packed import PackedDataset
    from tusk.data.shards.dataset import ShardDataset, is_shards

    if is_shards(request.source):
        return ShardDataset(str(request.source))

    return PackedDataset(Path(str(request.source)))


def is_packed(source: str | None) -> bool:
    """One HDF5 file, or a folder of shards, here or behind a URL."""
    from tusk.data.shards.dataset import is_shards

    if source is not None and Path(source).suffix in (".h5", ".hdf5"):
        return Path(source).is_file()
    return is_shards(source)
