"""Datasets for the command line: fetch, make, describe, and a contact sheet. None of it needs torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from tusk.config.data import Frames
from tusk.data.dataset import Dataset
from tusk.data.fetch import Progress as FetchProgress
from tusk.data.folder import FolderDataset, skipped_table
from tusk.data.frames import with_frames
from tusk.data.registry import DATASETS, Entry, Request, open_dataset
from tusk.data.remote import is_url, upload
from tusk.data.shards.format import MANIFEST
from tusk.data.shards.writer import Packed, pack_pictures
from tusk.data.sources import Source, Sources, files_in_lines, find_files, source_paths
from tusk.errors import DataError, UsageError, nearest
from tusk.io import atomic_write
from tusk.names import as_url
from tusk.progress import progress_bar
from tusk.report.sheet import contact_sheet
from tusk.training.settings import default_preset

__all__ = [
    "Request",
    "default_preset",
    "describe",
    "each_picture",
    "entries",
    "fetch",
    "find_pictures",
    "make_dataset",
    "open_any",
    "pack",
    "write_sheet",
]

_EXAMINED = 200  # images that are counted


def entries() -> list[Entry]:
    """Every dataset that tusk knows."""
    return [*DATASETS.values()]


def fetch(name: str, out: Path | None, tell: FetchProgress) -> Path:
    """MNIST, or the weights of VGG16: the only thing that uses the network."""
    from tusk.data.fetch.mnist import fetch_mnist
    from tusk.data.fetch.vgg16 import fetch_vgg16

    return fetch_mnist(out, tell) if name == "mnist" else fetch_vgg16(out, tell)


def make_dataset(name: str, out: Path, request: Request, *, png: bool = False) -> tuple[Path, Path]:
    """One packed file with images and truth, and a contact sheet; -> both."""
    if name in DATASETS and not DATASETS[name].made:
        makeable = [entry.name for entry in entries() if entry.made]
        raise UsageError(f"dataset '{name}'", "tusk cannot make it", nearest(name, makeable))
    if request.count is not None and request.count < 1:
        raise UsageError("--count", f"{request.count} is not a number of images", "give at least 1")
    if request.seed < 0:
        raise UsageError("--seed", f"{request.seed} is negative", "give 0 or more")
    target = out / f"{request.split}.h5"
    if target.exists():
        raise UsageError(str(target), "the file is there already", "name another folder, or delete it")
    from tusk.data.packed import Provenance, write_packed

    dataset = open_dataset(name, request)
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar(f"making {name}") as progress:
        settings = f"split={request.split} size={request.size}"
        origin = Provenance(generator=f"tusk data make {name}", seed=request.seed, settings=settings)
        write_packed(target, dataset, provenance=origin, progress=progress)
    sheet = out / f"{request.split}-sheet.png"
    contact_sheet(dataset).save(sheet)
    if png:
        _write_images(out / request.split, dataset)
    return target, sheet


def pack(
    source: Sources, out: str, *, shard_bytes: int = 1 << 30, side: int | None = None, seed: int = 0
) -> tuple[Packed, str]:
    """Pictures into shards in a folder, or behind a URL; -> what was packed, and where."""
    found = find_pictures(source)
    url = as_url(out) if is_url(out) else None
    with progress_bar("packing") as progress, ExitStack() as stack:
        folder = Path(out)
        if url is not None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tusk-pack-")))
        packed = pack_pictures(found, folder, shard_bytes=shard_bytes, side=side, seed=seed, progress=progress)
        if packed.skipped:
            atomic_write(folder / "skipped.csv", skipped_table(packed.skipped))
        if url is not None:
            extra = ["skipped.csv"] if packed.skipped else []
            # The list comes last: with it there are shards.
            upload(folder, url, [*(one.file for one in packed.manifest.shards), *extra, MANIFEST])
    return packed, url or str(folder)


def open_any(what: str, source: str | None, split: str, size: int | None) -> Dataset:
    """A dataset by its name, a packed file, or pictures."""
    named = what in DATASETS
    where = source if named else what
    with progress_bar("reading") as progress:
        request = Request(source=where, split=split, size=size, progress=progress)
        dataset = open_dataset(what if named else "folder", request)
    if len(dataset) == 0:
        raise DataError(what, "there is no image in it", "name another source")
    return dataset


def find_pictures(
    source: Sources, lines: Callable[[], list[str]] | None = None, *, without: Path | None = None
) -> Source:
    """The files that are meant, '-' for a list that `lines` gives. What lies in `without` is passed over."""
    paths = source_paths(source, "SOURCE")
    if "-" in paths and len(paths) > 1:
        raise UsageError("SOURCE -", "a list from stdin was named beside other sources", "give one or the other")
    found = files_in_lines(lines()) if paths[0] == "-" and lines else find_files(paths, without)
    if not found.files and not found.unreadable:
        raise DataError(paths[0], "there are no pictures in it", "check the path, or name another source")
    return found


def each_picture(source: Source, frames: Frames) -> Source:
    """The pictures in those files; what cannot be looked into is among them, so that results can say why."""
    found = with_frames(source, frames)
    refused = tuple(one.file for one in found.unreadable)
    numbers = (*found.frames, *(None for _ in refused)) if found.frames else ()
    return replace(found, files=found.files + refused, frames=numbers)


def write_sheet(dataset: Dataset, path: Path) -> None:
    contact_sheet(dataset).save(path)


def describe(dataset: Dataset) -> Iterator[str]:
    """Lines of plain text about a dataset, from its first images."""
    examined = range(min(_EXAMINED, len(dataset)))
    yield f"dataset: {dataset.name}"
    yield f"images: {len(dataset)}"
    if isinstance(dataset, FolderDataset):
        if dataset.skipped:
            yield f"skipped: {dataset.skipped} files that cannot be read, listed in {dataset.skipped_csv}"
        yield from dataset.found.remarks()
    shapes = Counter(f"{shape[1]}x{shape[0]}" for shape in (dataset.image(index).shape for index in examined))
    yield "size: " + ", ".join(size for size, _ in shapes.most_common(5))
    truths = [truth for truth in (dataset.truth(index) for index in examined) if truth is not None]
    if not truths:
        yield "truth: none"
        return
    points = Counter(len(truth.points) for truth in truths if truth.points is not None)
    if points:
        yield "points in an image: " + ", ".join(f"{number} ({times}x)" for number, times in sorted(points.items()))
    if any(truth.mask is not None for truth in truths):
        yield "masks: yes"
    if dataset.class_names:
        counts = Counter(int(value) for truth in truths if truth.classes is not None for value in truth.classes)
        names = (f"{name} ({counts[number]})" for number, name in enumerate(dataset.class_names))
        yield f"classes in the first {len(truths)}: " + ", ".join(names)
    for attribute in truths[0].attributes:
        found = Counter(
            truth.attributes[attribute].names[value] for truth in truths for value in truth.attributes[attribute].values
        )
        yield f"{attribute}: " + ", ".join(f"{name} ({times})" for name, times in found.most_common())


def _write_images(folder: Path, dataset: Dataset) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with progress_bar("writing PNG files") as progress:
        for index in range(len(dataset)):
            Image.fromarray(dataset.image(index)).save(folder / f"{index:06d}.png")
            progress(index + 1, len(dataset))
