"""MNIST, and `mnist-hard`: canvases of nine MNIST digits."""

from __future__ import annotations

from pathlib import Path

from tusk.data.dataset import Dataset, UInt8Array
from tusk.data.formats.idx import read_idx
from tusk.data.registry import Entry, Request, register
from tusk.data.synthetic.canvases import PATCH, DigitBank, DigitCanvases, Split, check_split
from tusk.errors import DataError

# The names that the four files have had from the beginning; some copies have a dot for the second hyphen.
_STEMS: dict[Split, str] = {"train": "train", "test": "t10k"}


def idx_names(split: Split) -> tuple[str, str]:
    """The usual names of a split's images and labels."""
    return f"{_STEMS[split]}-images-idx3-ubyte", f"{_STEMS[split]}-labels-idx1-ubyte"


def read_mnist(source: Path, split: Split) -> tuple[UInt8Array, UInt8Array]:
    """The images (N, 28, 28) and labels (N,) of one split, from a folder with MNIST's idx files."""
    images_name, labels_name = idx_names(split)
    images_path, labels_path = _find(source, images_name), _find(source, labels_name)
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if images.shape[1:] != (PATCH, PATCH):
        size = f"{images.shape[2]}x{images.shape[1]}"
        raise DataError(str(images_path), f"holds images of {size} pixels", f"use MNIST's, of {PATCH}x{PATCH}")
    if len(images) != len(labels):
        why = f"holds {len(labels)} labels for the {len(images)} images of {images_path.name}"
        raise DataError(str(labels_path), why, "use the two files that belong together")
    return images, labels


class MnistHard(DigitCanvases):
    """`mnist-hard`: canvases of nine MNIST digits; those of a split hold digits of that split of MNIST only."""

    def __init__(self, source: Path, *, split: Split, count: int = 50_000, seed: int = 0) -> None:
        check_split(split)
        # Absolute, because a worker process may be started in another folder.
        self.source = source.absolute()
        images, labels = read_mnist(self.source, split)
        super().__init__(
            "mnist-hard", DigitBank.of(images, labels, str(self.source)), split=split, count=count, seed=seed
        )

    def __reduce__(self) -> tuple[object, tuple[Path, Split, int, int]]:
        # A worker reads the files itself: quicker than sending it 47 MB.
        return _reopen, (self.source, self.split, len(self), self.seed)


def _reopen(source: Path, split: Split, count: int, seed: int) -> MnistHard:
    return MnistHard(source, split=split, count=count, seed=seed)


def _find(source: Path, name: str) -> Path:
    dotted = name.replace("-idx", ".idx")
    for candidate in (name, dotted, f"{name}.gz", f"{dotted}.gz"):
        if (source / candidate).is_file():
            return source / candidate
    why = f"has no {name} (nor {dotted}, nor either with .gz)" if source.is_dir() else "is not a folder"
    raise DataError(str(source), why, "give a folder with MNIST's four idx files, or run 'tusk data get mnist'")


def _open(request: Request) -> Dataset:
    from tusk.data.datasets.mnist_authors import MnistHardReleased, is_released_layout
    from tusk.data.fetch import default_data_dir

    folder = default_data_dir() / "mnist" if request.source is None else Path(request.source)
    if request.source is None and not folder.is_dir():
        raise DataError("mnist-hard", f"MNIST is not in {folder}", "run 'tusk data get mnist', or name its folder")
    if is_released_layout(folder):
        return MnistHardReleased(folder, split=request.half)
    return MnistHard(folder, split=request.half, count=request.count or 50_000, seed=request.seed)


register(
    Entry(
        "mnist-hard",
        "nine MNIST digits on a canvas",
        "'tusk data get mnist', or your own files",
        True,
        _open,
        scattered=True,
    )
)
