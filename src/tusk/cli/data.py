"""`tusk data list | get NAME | make NAME | info NAME_OR_PATH`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from tusk.data.dataset import Dataset
from tusk.data.folder import FolderDataset
from tusk.data.registry import DATASETS, Request, open_dataset
from tusk.errors import DataError, UsageError, nearest
from tusk.progress import progress_bar

_EXAMINED = 200  # images that `info` looks at for its counts


def show_list() -> None:
    """List the datasets that tusk knows."""
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "what", "where from", "tusk makes it"):
        table.add_column(heading)
    for entry in DATASETS.values():
        table.add_row(entry.name, entry.summary, entry.origin, "yes" if entry.made else "")
    Console(width=120).print(table)


def get(
    name: Annotated[tyro.conf.Positional[Literal["mnist", "vgg16"]], tyro.conf.arg(help="What to fetch.")],
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for it; default: in your data folder.")] = None,
) -> None:
    """Fetch MNIST, or the weights of VGG16 for the perceptual loss. This is the only command that uses the network."""
    from tusk.data.fetch.mnist import fetch_mnist
    from tusk.data.fetch.vgg16 import fetch_vgg16

    console = Console(stderr=True)
    with console.status(f"fetching {name}") as status:

        def tell(step: str, fraction: float) -> None:
            status.update(f"{step} ({fraction:.0%})")

        path = fetch_mnist(out, tell) if name == "mnist" else fetch_vgg16(out, tell)
    print(path)


def make(
    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A dataset that tusk makes: see 'tusk data list'.")],
    out: Annotated[Path, tyro.conf.arg(help="Folder for the files.")],
    count: Annotated[int, tyro.conf.arg(help="How many images.")] = 1000,
    split: Annotated[Literal["train", "test"], tyro.conf.arg(help="They share no digit, scene or face.")] = "train",
    seed: Annotated[int, tyro.conf.arg(help="The same seed gives the same images.")] = 0,
    size: Annotated[int | None, tyro.conf.arg(help="Side in pixels; default: the dataset's own.")] = None,
    source: Annotated[Path | None, tyro.conf.arg(help="Where the originals are, if it needs any (MNIST).")] = None,
    png: Annotated[bool, tyro.conf.arg(help="Also write every image as a PNG file.")] = False,
) -> None:
    """Make a dataset: one packed file with images and truth, and a contact sheet."""
    if name in DATASETS and not DATASETS[name].made:
        makeable = [entry.name for entry in DATASETS.values() if entry.made]
        raise UsageError(f"dataset '{name}'", "tusk cannot make it", nearest(name, makeable))
    if count < 1:
        raise UsageError("--count", f"{count} is not a number of images", "give at least 1")
    if seed < 0:
        raise UsageError("--seed", f"{seed} is negative", "give 0 or more")
    target = out / f"{split}.h5"
    if target.exists():
        raise UsageError(str(target), "the file is there already", "name another folder, or delete it")
    from tusk.data.packed import Provenance, write_packed
    from tusk.report.sheet import contact_sheet

    where = None if source is None else str(source)
    dataset = open_dataset(name, Request(source=where, split=split, size=size, count=count, seed=seed))
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar(f"making {name}") as progress:
        origin = Provenance(generator=f"tusk data make {name}", seed=seed, settings=f"split={split} size={size}")
        write_packed(target, dataset, provenance=origin, progress=progress)
    sheet = out / f"{split}-sheet.png"
    contact_sheet(dataset).save(sheet)
    if png:
        _write_images(out / split, dataset)
    print(target)
    Console(stderr=True, soft_wrap=True).print(f"Contact sheet {sheet}. Next: tusk data info {target}")


def info(
    what: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A dataset's name, a packed file, or pictures.")],
    source: Annotated[Path | None, tyro.conf.arg(help="With a name: where the originals are.")] = None,
    split: Annotated[str, tyro.conf.arg(help="Which part.")] = "train",
    size: Annotated[int | None, tyro.conf.arg(help="Side in pixels.")] = None,
    sheet: Annotated[Path | None, tyro.conf.arg(help="Where to write the contact sheet.")] = None,
) -> None:
    """Tell what is in a dataset or folder: counts, sizes, classes, and a contact sheet."""
    from tusk.report.sheet import contact_sheet

    with progress_bar("reading") as progress:
        if what in DATASETS:
            where = None if source is None else str(source)
            dataset = open_dataset(what, Request(source=where, split=split, size=size, progress=progress))
        else:
            dataset = open_dataset("folder", Request(source=what, size=size, split=split, progress=progress))
    if len(dataset) == 0:
        raise DataError(what, "there is no image in it", "name another source")
    for line in describe(dataset):
        print(line)
    target = sheet or Path(f"{dataset.name}-sheet.png")
    contact_sheet(dataset).save(target)
    print(f"contact sheet: {target}")


def describe(dataset: Dataset) -> Iterator[str]:
    """Lines of plain text about a dataset, from its first images."""
    seen = range(min(_EXAMINED, len(dataset)))
    yield f"dataset: {dataset.name}"
    yield f"images: {len(dataset)}"
    if isinstance(dataset, FolderDataset) and dataset.skipped:
        yield f"skipped: {dataset.skipped} files that cannot be read, listed in {dataset.skipped_csv}"
    shapes = Counter(f"{shape[1]}x{shape[0]}" for shape in (dataset.image(index).shape for index in seen))
    yield "size: " + ", ".join(size for size, _ in shapes.most_common(5))
    truths = [truth for truth in (dataset.truth(index) for index in seen) if truth is not None]
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
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    with progress_bar("writing PNG files") as progress:
        for index in range(len(dataset)):
            Image.fromarray(dataset.image(index)).save(folder / f"{index:06d}.png")
            progress(index + 1, len(dataset))


VERBS: dict[str, Callable[..., None]] = {"list": show_list, "get": get, "make": make, "info": info}


def run(args: Sequence[str]) -> None:
    """One verb of `tusk data`."""
    from tusk.cli.flags import run_with_flags

    if not args or args[0] in ("--help", "-h"):
        for name, verb in VERBS.items():
            print(f"  tusk data {name:<8}{(verb.__doc__ or '').splitlines()[0]}")
        return
    if args[0] not in VERBS:
        raise UsageError(f"'data {args[0]}'", "there is no such verb", nearest(args[0], VERBS))
    run_with_flags(VERBS[args[0]], args[1:], f"tusk data {args[0]}")
