"""`tusk demo`: learn handwritten digits from scratch in a few minutes, without a label, and show what was found.

Everything comes with the package's own dependencies: the digits are the 1,797 that scikit-learn ships.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from tusk.cli.flags import Device, run_with_flags
from tusk.errors import UsageError


def demo(
    minutes: Annotated[float, tyro.conf.arg(help="How long to learn, at most.")] = 4.5,
    seed: Annotated[int, tyro.conf.arg(help="Seed of everything random.")] = 0,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for the results; default runs/demo/digits.")] = None,
    device: Device = "auto",
    count: Annotated[int, tyro.conf.arg(help="Canvases of digits that it never saw, for the figures.")] = 300,
) -> None:
    """Learn handwritten digits from scratch in a few minutes, without a label, and show what was found."""
    if not 0 < minutes <= 24 * 60:
        raise UsageError("--minutes", f"{minutes:g} is not a time to learn for", "give minutes from above 0 to 1440")
    if seed < 0:
        raise UsageError("--seed", f"{seed} is negative", "give 0 or more")
    if count < 1:
        raise UsageError("--count", f"figures of {count} canvases say nothing", "give 1 or more")
    from tusk.api.runs import prepare_torch
    from tusk.api.training import train
    from tusk.folders import new_folder
    from tusk.progress import stderr_console

    prepare_torch()
    folder = new_folder(Path("runs/demo/digits")) if out is None else out
    console = stderr_console()
    model = train("digits", minutes=minutes, seed=seed, out=folder, device=device, command="tusk demo")
    page = model.report(folder / "report.html", data="digits", count=count)
    figures = model.evaluate("digits", count=count, seed=seed)
    console.print(
        f"On {count} canvases of digits it never saw: {figures['localisation']:.1f}% of {count * 9} digits found "
        f"within half their box; {figures['both']:.1f}% found and of the type that is assigned to their digit."
    )
    console.print(f"Model {model.path}\nOpen {page} in a browser to see it.")
    print(folder)


def run(args: Sequence[str]) -> None:
    run_with_flags(demo, args, "tusk demo")
