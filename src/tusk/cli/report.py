"""`tusk report RUN`: one page about what was learnt."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from tusk.cli.flags import Device, run_with_flags


def report(
    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A run's folder, a model file, or a model's name.")],
    out: Annotated[Path | None, tyro.conf.arg(help="The page to write; default RUN/report.html.")] = None,
    data: Annotated[str | None, tyro.conf.arg(help="Images to show it on: a folder or a dataset's name.")] = None,
    count: Annotated[int, tyro.conf.arg(help="How many images to show it on, at most.")] = 200,
    trust_source: Annotated[
        bool, tyro.conf.arg(help="Open the folder that a model file names; that of a run's own folder always is.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Write one page about a run or model: pictures, types, curves, and how it is doing."""
    from tusk.api.runs import prepare_torch, report_run

    prepare_torch()
    written = report_run(run, out, data, count, trust_source=trust_source, device=device)
    if written.verdict is not None:
        print(written.verdict.sentence, file=sys.stderr)
    for remark in written.remarks:
        if not remark.well:
            print(f"- {remark.words}", file=sys.stderr)
    print(f"Open {written.path} in a browser.", file=sys.stderr)
    print(written.path)


def run(args: Sequence[str]) -> None:
    run_with_flags(report, args, "tusk report")
