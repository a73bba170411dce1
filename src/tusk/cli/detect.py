"""`tusk detect MODEL SOURCE`: points, types, scores and masks -> CSV, COCO, pictures."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from tusk.cli.flags import Device, run_with_flags, take_settings
from tusk.errors import DataError, StoppedError, UsageError, visible
from tusk.interrupts import process_is_ours, stop_signals
from tusk.names import as_text

if TYPE_CHECKING:
    from rich.console import Console

    from tusk.detection.records import Totals
    from tusk.export.files import FileResults

_SHOWN = 8  # sources that the next command names


def detect(
    model: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL", help="A model's name, its file, or a run's folder.")
    ],
    source: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(
            metavar="SOURCE", help="Pictures, folders, globs, list files, one or several; or - for a list from stdin."
        ),
    ],
    keypoints: Annotated[
        int | None, tyro.conf.arg(help="At most how many in a picture; default: as in training.")
    ] = None,
    min_score: Annotated[float | None, tyro.conf.arg(help="Leave out points of a lower score, 0 to 1.")] = None,
    min_gain: Annotated[
        float | None,
        tyro.conf.arg(
            help="Leave out points of a lower gain (in reconstruction error); default: as training found; 0: most stay."
        ),
    ] = None,
    batch: Annotated[int, tyro.conf.arg(help="Images that go through the network together.")] = 8,
    overlays: Annotated[bool, tyro.conf.arg(help="Also draw what was found into each picture.")] = False,
    masks: Annotated[bool, tyro.conf.arg(help="Also write masks as PNG (models with layers).")] = False,
    frames: Annotated[
        Literal["first", "all"] | None,
        tyro.conf.arg(
            help="Of TIFF and GIF files with several frames: the first, or all, each as a picture; default: as in "
            "training."
        ),
    ] = None,
    shard: Annotated[str | None, tyro.conf.arg(help="i/n: do the i-th of n shares; all write to one --out.")] = None,
    resume: Annotated[bool, tyro.conf.arg(help="Go on with the latest run of this source, or that in --out.")] = False,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for results; default runs/detect/NAME.")] = None,
    rows: Annotated[
        bool,
        tyro.conf.arg(name="json", help="Also write JSON to stdout: a line for each point, then one with the summary."),
    ] = False,
    device: Device = "auto",
    detection: tyro.conf.Suppress[dict[str, Any] | None] = None,
) -> None:
    """Detect what a model has learnt in pictures; stopped at any moment, the same command with --out goes on.

    --detection.SETTING VALUE sets any detection setting over the model's own: see 'tusk config --help'.
    """
    if not source:
        raise UsageError("SOURCE", "no pictures were named", "give files, folders, globs or a list")
    share = _share(shard)
    if share[1] > 1 and out is None:
        raise UsageError("--out", "several processes write to one folder", "name it with --out")
    if share[1] > 1 and rows:
        raise UsageError("--json", "one share of several does not hold all rows", "read detections.csv in the end")
    from tusk.api.data import find_pictures

    pictures = find_pictures(source, _lines_of_stdin, without=out)  # before the seconds that torch takes
    from tusk.api.model import load
    from tusk.api.runs import prepare_torch, say_device
    from tusk.progress import stderr_console

    prepare_torch()
    console = stderr_console()
    settings = dict(detection or {})
    # These two have flags of their own, which count for more than the same settings by their long names.
    long_gain, long_score = settings.pop("min_gain", None), settings.pop("min_score", None)
    min_gain = long_gain if min_gain is None else min_gain
    min_score = long_score if min_score is None else min_score
    results = say_device(load(model, device)).detect_files(
        pictures,
        out,
        keypoints,
        min_score,
        min_gain,
        batch=batch,
        masks=masks,
        overlays=overlays,
        frames=frames,
        share=share,
        resume=resume,
        started=lambda folder: console.print(visible(f"Results go to {folder}")),
        **settings,
    )
    if results.totals is None:
        console.print(f"Share {share[0] + 1} of {share[1]} is done; the last one to end joins the results.")
        return
    _end(results, source[0], console, rows=rows)
    if results.totals.unwritten:
        number = results.totals.unwritten
        console.print(f"Pictures whose mask or overlay could not be written: {number}, see unwritten.csv.")
    if min_gain is None and results.min_gain > 0:
        left_out = f"Points of a gain below {results.min_gain:g} are left out: in training they explained nothing."
        console.print(f"{left_out} --min-gain 0 keeps them.")
    shown = [*source[:_SHOWN], *(["..."] if len(source) > _SHOWN else [])]
    console.print(visible(_next(["tusk", "detect", model, *shown], overlays)))
    console.print(visible(f"Results are in {results.folder}"))
    if not rows:
        print(results.folder)


def run(args: Sequence[str]) -> None:
    process_is_ours()
    kept = "what was done is kept, and the same command goes on with --out or --resume"
    stopped = StoppedError("tusk detect", "stopped", kept)
    with stop_signals(lambda: stopped, f"tusk detect: ended at once; {kept}."):
        rest, settings = take_settings(args, "detection")
        run_with_flags(detect, rest, "tusk detect", detection=settings)


def _end(results: FileResults, source: str, console: Console, *, rows: bool) -> None:
    """Say what was found; the rows to stdout where asked."""
    from tusk.detection.records import found_words

    totals, folder = results.totals, results.folder
    assert totals is not None
    if not totals.pictures:
        why = f"none of its {results.files} pictures can be read"
        raise DataError(source, why, f"see {folder / 'unreadable.csv'}")
    console.print(visible(found_words(totals, results.titles)))
    if totals.unreadable:
        console.print(f"Files that cannot be read: {totals.unreadable:,}, see unreadable.csv.")
    for remark in results.remarks:
        console.print(remark)
    if rows:
        for row in results.rows():
            print(json.dumps({**row, "image": as_text(str(row["image"]))}))
        print(json.dumps({"summary": _summary(totals, results.remarks)}))


def _summary(totals: Totals, remarks: list[str]) -> dict[str, Any]:
    """What the lines before it cannot say: pictures without a point, and limits that were reached."""
    return {
        "pictures": totals.pictures,
        "empty": totals.empty,
        "unreadable": totals.unreadable,
        "total": totals.instances,
        **{f"type_{number}": count for number, count in enumerate(totals.types)},
        "at_limit": totals.limits.at_limit,
        "crowded": totals.limits.crowded,
        "small": totals.limits.small,
        "remarks": remarks,
    }


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
