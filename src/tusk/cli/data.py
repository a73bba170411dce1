"""`tusk data list | get NAME | make NAME | pack SOURCE | info NAME_OR_PATH`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from tusk.errors import UsageError, nearest


def show_list() -> None:
    """List the datasets that tusk knows."""
    from rich.console import Console
    from rich.table import Table

    from tusk.api.data import entries

    table = Table(box=None, pad_edge=False)
    for heading in ("name", "what", "where from", "tusk makes it"):
        table.add_column(heading)
    for entry in entries():
        table.add_row(entry.name, entry.summary, entry.origin, "yes" if entry.made else "")
    Console(width=120).print(table)


def get(
    name: Annotated[tyro.conf.Positional[Literal["mnist", "vgg16"]], tyro.conf.arg(help="What to fetch.")],
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for it; default: in your data folder.")] = None,
) -> None:
    """Fetch MNIST, or the weights of VGG16 for the perceptual loss. This is the only command that uses the network."""
    from tusk.api.data import fetch
    from tusk.progress import stderr_console

    with stderr_console().status(f"fetching {name}") as status:
        print(fetch(name, out, lambda step, fraction: status.update(f"{step} ({fraction:.0%})")))


def make(
    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A dataset that tusk makes: see 'tusk data list'.")],
    out: Annotated[Path, tyro.conf.arg(help="Folder for the files.")],
    count: Annotated[int, tyro.conf.arg(help="How many images.")] = 1000,
    split: Annotated[Literal["train", "test"], tyro.conf.arg(help="They share no digit, scene or face.")] = "train",
    seed: Annotated[int, tyro.conf.arg(help="The same seed gives the same images.")] = 0,
    size: Annotated[int | None, tyro.conf.arg(help="Side in pixels; default: the dataset's own.")] = None,
    source: Annotated[str | None, tyro.conf.arg(help="Where the originals are, if it needs any (MNIST).")] = None,
    png: Annotated[bool, tyro.conf.arg(help="Also write every image as a PNG file.")] = False,
) -> None:
    """Make a dataset: one packed file with images and truth, and a contact sheet."""
    from tusk.api.data import Request, make_dataset
    from tusk.progress import stderr_console

    request = Request(source=source, split=split, size=size, count=count, seed=seed)
    target, sheet = make_dataset(name, out, request, png=png)
    print(target)
    stderr_console().print(f"Contact sheet {sheet}. Next: tusk data info {target}")


def info(
    what: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A dataset's name, a packed file, or pictures.")],
    source: Annotated[str | None, tyro.conf.arg(help="With a name: where the originals are.")] = None,
    split: Annotated[str, tyro.conf.arg(help="Which part.")] = "train",
    size: Annotated[int | None, tyro.conf.arg(help="Side in pixels.")] = None,
    sheet: Annotated[Path | None, tyro.conf.arg(help="Where to write the contact sheet.")] = None,
) -> None:
    """Tell what is in a dataset or folder: counts, sizes, classes, and a contact sheet."""
    from tusk.api.data import describe, open_any, write_sheet

    dataset = open_any(what, source, split, size)
    for line in describe(dataset):
        print(line)
    target = sheet or Path(f"{dataset.name}-sheet.png")
    write_sheet(dataset, target)
    print(f"contact sheet: {target}")


def pack(
    source: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="SOURCE", help="Pictures, folders, globs, list files or URLs, one or several."),
    ],
    out: Annotated[str, tyro.conf.arg(help="Folder for the shards, or a URL such as s3://bucket/photos.")],
    shard_size: Annotated[str, tyro.conf.arg(help="Bytes in a shard, such as 500MB or 1GB.")] = "1GB",
    side: Annotated[
        int | None,
        tyro.conf.arg(help="Scale larger pictures down to this shorter side (as JPEG); default: as they are."),
    ] = None,
    seed: Annotated[int, tyro.conf.arg(help="Of the order of the pictures, which is random.")] = 0,
) -> None:
    """Pack pictures into a few large files, for trainings on millions of them; stopped, the same command goes on."""
    if not source:
        raise UsageError("SOURCE", "no pictures were named", "give files, folders, globs or a list")
    size = _bytes_of(shard_size)
    from tusk.api.data import pack as pack_sources
    from tusk.progress import stderr_console

    packed, where = pack_sources(source, out, shard_bytes=size, side=side, seed=seed)
    shards, console = packed.manifest.shards, stderr_console()
    console.print(f"{sum(one.pictures for one in shards):,} pictures in {len(shards)} shards.")
    if packed.skipped:
        console.print(f"{len(packed.skipped):,} files cannot be read, see skipped.csv there.")
    console.print(f"Next: tusk train {where}")
    print(where)


def _bytes_of(words: str) -> int:
    """`1GB` -> 1_000_000_000."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]?)i?B?", words)
    number = 0 if found is None else int(float(found[1]) * 1000 ** " kMGT".index(found[2] or " "))
    if number < 1:
        raise UsageError("--shard-size", f"'{words}' is no size", "give one such as 500MB or 1GB")
    return number


VERBS: dict[str, Callable[..., None]] = {"list": show_list, "get": get, "make": make, "pack": pack, "info": info}


def run(args: Sequence[str]) -> None:
    """List, fetch, make and describe datasets."""
    from tusk.cli.flags import run_with_flags

    if not args or args[0] in ("--help", "-h"):
        for name, verb in VERBS.items():
            print(f"  tusk data {name:<8}{(verb.__doc__ or '').splitlines()[0]}")
        return
    if args[0] not in VERBS:
        raise UsageError(f"'data {args[0]}'", "there is no such verb", nearest(args[0], VERBS))
    run_with_flags(VERBS[args[0]], args[1:], f"tusk data {args[0]}")
