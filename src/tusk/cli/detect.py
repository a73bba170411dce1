"""`tusk detect MODEL SOURCE`: points, types, scores and masks -> CSV, COCO, pictures."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from tusk import __version__
from tusk.cli.main import new_folder, prepare_torch
from tusk.errors import DataError, UsageError
from tusk.progress import progress_bar

if TYPE_CHECKING:
    from tusk.data.sources import Source
    from tusk.detection.batch import Draw
    from tusk.detection.ledger import Manifest
    from tusk.detection.records import Totals


def detect(
    model: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL", help="A model's name, its file, or a run's folder.")
    ],
    source: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="SOURCE", help="Picture, folder, glob, list file, or - for a list from stdin."),
    ],
    keypoints: Annotated[int | None, tyro.conf.arg(help="How many to look for; default: as in training.")] = None,
    min_score: Annotated[float, tyro.conf.arg(help="Leave out points of a lower score, 0 to 1.")] = 0.0,
    min_gain: Annotated[
        float | None,
        tyro.conf.arg(
            help="Leave out points that the image needs less; default: the model's own; 0: few are left out."
        ),
    ] = None,
    batch: Annotated[int, tyro.conf.arg(help="Images that go through the network together.")] = 8,
    overlays: Annotated[bool, tyro.conf.arg(help="Also draw what was found into each picture.")] = False,
    masks: Annotated[bool, tyro.conf.arg(help="Also write masks as PNG (models with layers).")] = False,
    shard: Annotated[str | None, tyro.conf.arg(help="i/n: do the i-th of n shares; all write to one --out.")] = None,
    resume: Annotated[bool, tyro.conf.arg(help="Go on with the latest run of this source, or that in --out.")] = False,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for results; default runs/detect/NAME.")] = None,
    rows: Annotated[bool, tyro.conf.arg(name="json", help="Also write a JSON line for each point to stdout.")] = False,
) -> None:
    """Find what a model has learnt in pictures; stopped at any moment, the same command with --out goes on."""
    share, shares = _share(shard)
    if shares > 1 and out is None:
        raise UsageError("--out", "several processes write to one folder", "name it with --out")
    if shares > 1 and rows:
        raise UsageError("--json", "one share of several does not hold all rows", "read detections.csv in the end")
    pictures = _find(source)
    prepare_torch()
    import tusk
    from tusk.detection.batch import Batch
    from tusk.detection.ledger import Ledger, Manifest, checksum, part_size
    from tusk.detection.predictor import Predictor
    from tusk.export.results import write_results

    stored = tusk.load(model)
    predictor = Predictor(stored, keypoints, min_score, min_gain, batch)
    settings = stored.config.model
    if masks and settings.decode != "layers":
        raise UsageError("--masks", "this model has no layers, so it knows no masks", "leave it out")
    manifest = Manifest(
        version=__version__,
        model=stored.fingerprint(),
        source=str(pictures.origin),
        files=len(pictures.files),
        names=checksum(pictures),
        part=part_size(len(pictures.files)),
        keypoints=keypoints,
        min_score=min_score,
        min_gain=predictor.min_gain,
        batch=batch,
        masks=masks,
        overlays=overlays,
    )
    folder = _folder(out, pictures.name, resume=resume)
    ledger = Ledger(folder, pictures, manifest)
    pictures = replace(pictures, files=())  # they are in the ledger now: memory does not grow with their number
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"Results go to {folder}", markup=False)
    work = Batch(
        predictor,
        pictures,
        manifest.files,
        folder,
        ledger,
        batch,
        settings.types,
        write_results,
        share,
        shares,
        masks,
        _draw(settings.types) if overlays else None,
    )
    with progress_bar("detecting") as progress:
        totals = work.run(progress) or ledger.totals()
    if totals is None:
        console.print(f"Share {share + 1} of {shares} is done; the last one to end joins the results.")
        return
    _end(folder, totals, manifest, console, rows=rows)
    if min_gain is None and predictor.min_gain > 0:
        left_out = f"Points of a gain below {predictor.min_gain:g} are left out: in training they stood for nothing."
        console.print(f"{left_out} --min-gain 0 keeps them.", markup=False)
    again = ["tusk", "detect", model, source]
    console.print(_next(again, overlays), markup=False)
    console.print(f"Results are in {folder}", markup=False)
    if not rows:
        print(folder)


def run(args: Sequence[str]) -> None:
    """The verb with its flags."""
    from tusk.cli.flags import run_with_flags

    run_with_flags(detect, args, "tusk detect")


def _end(folder: Path, totals: Totals, manifest: Manifest, console: Console, *, rows: bool) -> None:
    """Say what was found; the rows to stdout where asked."""
    if not totals.pictures:
        why = f"none of its {manifest.files} pictures can be read"
        raise DataError(manifest.source, why, f"see {folder / 'unreadable.csv'}")
    refused = f"; files that cannot be read: {totals.unreadable}, see unreadable.csv" if totals.unreadable else ""
    console.print(f"Points: {totals.instances}, pictures: {totals.pictures}{refused}.", markup=False)
    if rows:
        from tusk.export.results import read_rows

        for row in read_rows(folder / "detections.csv"):
            print(json.dumps(row))


def _next(command: list[str], overlays: bool) -> str:
    if overlays:
        return f"Next: {shlex.join([*command, '--min-gain', '5'])} keeps only what a picture is much worse without."
    return f"Next: {shlex.join([*command, '--overlays'])} also draws the points into the pictures."


def _share(shard: str | None) -> tuple[int, int]:
    """(which, of how many), counted from 0: from --shard i/n, or from torchrun's variables."""
    world = os.environ.get("WORLD_SIZE", "1")
    if world.isdecimal() and int(world) > 1:
        if shard is not None:
            raise UsageError("--shard", "torchrun gives each process its share already", "leave it out")
        rank = os.environ.get("RANK", "")
        if not rank.isdecimal() or int(rank) >= int(world):
            raise UsageError("RANK", f"it is '{rank}' with a WORLD_SIZE of {world}", "start the command by torchrun")
        return int(rank), int(world)
    if shard is None:
        return 0, 1
    numbers = re.fullmatch(r"(\d+)/(\d+)", shard)
    if numbers is None or not 1 <= int(numbers[1]) <= int(numbers[2]):
        raise UsageError("--shard", f"'{shard}' is not a share", "give i/n with i from 1 to n, such as 1/4")
    return int(numbers[1]) - 1, int(numbers[2])


def _find(source: str) -> Source:
    """The files that are meant; folders that cannot be looked into stand among them, to be told in the end."""
    from tusk.data.sources import files_in_lines, find_files

    if source == "-":
        lines = sys.stdin.buffer.read().decode("utf-8-sig", "surrogateescape").splitlines()
        found = files_in_lines(lines)
    else:
        found = find_files(source)
    if not found.files and not found.unreadable:
        raise DataError(source, "there are no pictures in it", "check the path, or name another source")
    return replace(found, files=found.files + tuple(folder.file for folder in found.unreadable))


def _folder(out: Path | None, name: str, *, resume: bool) -> Path:
    """Where the results go: a new folder, or with --resume that of the latest run."""
    if out is None:
        wanted = Path("runs/detect") / name
        fresh = new_folder(wanted)
        if not resume:
            return fresh
        number = int(fresh.name.removeprefix(f"{name}-")) - 1 if fresh != wanted else 0
        latest = wanted if number < 2 else wanted.with_name(f"{name}-{number}")
    else:
        latest = out
    if resume and not (latest / "manifest.json").is_file():
        raise UsageError("--resume", f"there is no run in {latest}", "leave it out to begin one")
    return latest


def _draw(types: int) -> Draw:
    from tusk.report.overlay import overlay

    return lambda path, found: overlay(path, found, types)
