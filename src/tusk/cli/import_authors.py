"""`tusk import-authors FILE OUT`: a checkpoint of the paper's authors as a tusk model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from tusk.cli.flags import run_with_flags
from tusk.errors import UsageError


def import_authors(
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(help="A checkpoint that the authors released.")],
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(help="The model file to write (.safetensors).")],
    preset: Annotated[str, tyro.conf.arg(help="The dataset that it was trained on.")] = "mnist-hard",
) -> None:
    """Turn a checkpoint of the paper's authors into a tusk model."""
    if out.suffix != ".safetensors":
        raise UsageError(str(out), "a model file ends in .safetensors", f"write to {out.with_suffix('.safetensors')}")
    from tusk.api import runs

    runs.import_authors(file, out, preset)
    print(out)


def run(args: Sequence[str]) -> None:
    run_with_flags(import_authors, args, "tusk import-authors")
