"""`tusk detect MODEL SOURCE`: points, types, scores and masks -> CSV, COCO, pictures."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from tusk.cli.flags import run_with_flags, take_settings
from tusk.errors import DataError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tusk.export.files import FileResults


def detect(
    model: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL", help="A model's name, its file, or a run's folder.")
    ],
    source: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="SOURCE", help="Picture, folder, glob, list file, or - for a list from stdin."),
    ],
    keypoints: Annotated[
        int | None, tyro.conf.arg(help="At most how many in a picture; default: as in training.")
    ] = None,
    min_score: Annotated[float, tyro.conf.arg(help="Leave out points of a lower score, 0 to 1.")] = 0.0,
    min_gain: Annotated[
        float | None,
        tyro.conf.arg(
            help="Leave out points of a lower gain (in reconstruction error); default: as training found; 0: most stay."
        ),
    ] = None,
    batch: Annotated[int, tyro.conf.arg(help="Images that go through the network together.")] = 8,
    overlays: Annotated[bool, tyro.conf.arg(help="Also draw what was found into each picture.")] = False,
    masks: Annotated[bool, tyro.conf.arg(help="Also write masks as PNG (models with layers).")] = False,
    shard: Annotated[str | None, tyro.conf.arg(help="i/n: do the i-th of n shares; all write to one --out.")] = None,
    resume: Annotated[bool, tyro.conf.arg(help="Go on with the latest run of this source, or that in --out.")] = False,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for results; default runs/detect/NAME.")] = None,
    rows: Annotated[bool, tyro.conf.arg(name="json", help="Also write a JSON line for each point to stdout.")] = False,
    detection: tyro.conf.Suppress[dict[str, Any] | None] = None,
) -> None:
    """Detect what a model has learnt in pictures; stopped at any moment, the same command with --out goes on.

    --detection.SETTING VALUE sets any detection setting over the model's own: see 'tusk config --help'.
    """
    share = _share(shard)
    if share[1] > 1 and out is None:
        raise UsageError("--out", "several processes write to one folder", "name it with --out")
    if share[1] > 1 and rows:
        raise UsageError("--json", "one share of several does not hold all rows", "read detections.csv in the end")
    from tusk.api.data import find_pictures

    pictures = find_pictures(source, _lines_of_stdin)  # before the seconds that torch takes
    from tusk.api.model import load
    from tusk.api.runs import prepare_torch
    from tusk.progress import stderr_console

    prepare_torch()
    console = stderr_console()
    settings = dict(detection or {})
    if min_gain is None:
        min_gain = settings.pop("min_gain", None)
    results = load(model).detect_files(
        pictures,
        out,
        keypoints,
        min_score,
        min_gain,
        batch=batch,
        masks=masks,
        overlays=overlays,
        share=share,
        resume=resume,
        started=lambda folder: console.print(f"Results go to {folder}"),
        **settings,
    )
    if results.totals is None:
        console.print(f"Share {share[0] + 1} of {share[1]} is done; the last one to end joins the results.")
        return
    _end(results, source, console, rows=rows)
    if min_gain is None and results.min_gain > 0:
        left_out = f"Points of a gain below {results.min_gain:g} are left out: in training they explained nothing."
        console.print(f"{left_out} --min-gain 0 keeps them.")
    console.print(_next(["tusk", "detect", model, source], overlays))
    console.print(f"Results are in {results.folder}")
    if not rows:
        print(results.folder)


def run(args: Sequence[str]) -> None:
    rest, settings = take_settings(args, "detection")
    run_with_flags(detect, rest, "tusk detect", detection=settings)


def _end(results: FileResults, source: str, console: Console, *, rows: bool) -> None:
    """Say what was found; the rows to stdout where asked."""
    totals, folder = results.totals, results.folder
    assert totals is not None
    if not totals.pictures:
        why = f"none of its {results.files} pictures can be read"
        raise DataError(source, why, f"see {folder / 'unreadable.csv'}")
    refused = f"; files that cannot be read: {totals.unreadable}, see unreadable.csv" if totals.unreadable else ""
    console.print(f"Points: {totals.instances}, pictures: {totals.pictures}{refused}.")
    if rows:
        for row in results.rows():
            print(json.dumps(row))


def _next(command: list[str], overlays: bool) -> str:
    if overlays:
        return f"Next: {shlex.join([*command, '--min-gain', '5'])} keeps only what explains much of a picture."
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


def _lines_of_stdin() -> list[str]:
    return sys.stdin.buffer.read().decode("utf-8-sig", "surrogateescape").splitlines()
