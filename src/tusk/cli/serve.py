"""`tusk serve MODEL [PICTURES]`: a page on this machine, to look, to name and to correct."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from tusk.cli.flags import Device, run_with_flags
from tusk.errors import UsageError, visible

if TYPE_CHECKING:
    from tusk.serve.workbench import Workbench


def serve(
    model: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL", help="A model's name, its file, or a run's folder.")
    ],
    pictures: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="PICTURES", help="Folders, files, globs to look through; others can be dropped."),
    ] = (),
    port: Annotated[int, tyro.conf.arg(help="Where it listens; 0: any that is free.")] = 8000,
    host: Annotated[
        str, tyro.conf.arg(help="Who may come: by default this machine alone. With any other, a token is needed.")
    ] = "127.0.0.1",
    token: Annotated[str | None, tyro.conf.arg(help="What whoever comes must show; by default a new one.")] = None,
    allow_host: Annotated[
        str | None, tyro.conf.arg(help="A name by which this machine may be called, beside its addresses.")
    ] = None,
    keypoints: Annotated[
        int | None, tyro.conf.arg(help="At most how many in a picture; default: as in training.")
    ] = None,
    jobs: Annotated[int, tyro.conf.arg(help="Pictures that wait at most; others are told to come again.")] = 8,
    most_megabytes: Annotated[int, tyro.conf.arg(help="Of one picture that is sent.")] = 32,
    names: Annotated[Path | None, tyro.conf.arg(help="Another file of names than the one beside the model.")] = None,
    device: Device = "auto",
) -> None:
    """Show it in the browser: pictures with their points, types with names, corrections by clicks. Ctrl-C ends it."""
    for flag, value in (("--jobs", jobs), ("--most-megabytes", most_megabytes)):
        if value < 1:
            raise UsageError(flag, f"{value} is too few", "give at least 1")
    if token is not None and (len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token):
        raise UsageError("--token", "it is too short, or not plain letters", "give 16 letters or more, or leave it out")
    if not 0 <= port <= 65_535:
        raise UsageError("--port", f"{port} is no port", "give a number from 0 to 65535")
    try:
        from tusk.api.serving import serve_model
        from tusk.serve.server import Listen
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "multipart", "python_multipart"):
            raise
        why = f"{error.name} is not installed"
        raise UsageError("tusk serve", why, "run 'pip install \"tusk-keypoints[serve]\"'") from error
    from tusk.api.runs import prepare_torch

    prepare_torch()
    hosts = () if allow_host is None else (allow_host,)
    listen = Listen(host, port, token, hosts, jobs, most_megabytes << 20)
    serve_model(model, pictures, listen, keypoints=keypoints, names=names, device=device, ready=_say)
    print("tusk serve: stopped.", file=sys.stderr)


def _say(address: str, bench: Workbench) -> None:
    from tusk.device import device_words

    number = len(bench.pictures)
    print(visible(f"{number:,} pictures; names go to {bench.names.path}"), file=sys.stderr)
    if (place := bench.model.network.device).type != "cpu":
        print(f"Runs on {device_words(place)}", file=sys.stderr)
    if bench.pictures.left_out:
        print(f"Left out: {bench.pictures.left_out} links that lead out of the folder.", file=sys.stderr)
    print(f"Open {address} in a browser; Ctrl-C ends it.", file=sys.stderr)
    print(address, flush=True)


def run(args: Sequence[str]) -> None:
    run_with_flags(serve, args, "tusk serve")
