"""`tusk preview`: a first look at pictures, without learning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from tusk.cli.flags import run_with_flags


def preview(
    source: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help="Folder, file, glob or list.")
    ],
    /,
    *,
    thing_size: Annotated[float | None, tyro.conf.arg(help="Diameter of a usual thing in pixels, if known.")] = None,
    out: Annotated[Path | None, tyro.conf.arg(help="The picture to write; default runs/preview/NAME.png.")] = None,
) -> None:
    """Say how large things are, how many, and on what they lie, and draw it on a few of the pictures."""
    from tusk.api.preview import preview_pictures

    seen, path = preview_pictures(list(source), thing_size, out)
    for sentence in seen.sentences():
        print(sentence, file=sys.stderr)
    print(f"Circles are drawn in {path}. Next: tusk train {source[0]}", file=sys.stderr)
    print(path)


def run(args: Sequence[str]) -> None:
    run_with_flags(preview, args, "tusk preview")
