"""`tusk evaluate MODEL --data NAME`: the paper's measures, beside the paper's figures."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from tusk import __version__
from tusk.cli.main import make_folder, new_folder, prepare_torch

if TYPE_CHECKING:
    from rich.console import Console

    from tusk.evaluation.evaluate import Evaluation
    from tusk.evaluation.figures import Figure


def evaluate(
    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A model's name, its file, or a run's folder.")],
    data: Annotated[str, tyro.conf.arg(help="The dataset, by its name: see 'tusk data list'.")],
    source: Annotated[Path | None, tyro.conf.arg(help="Where the originals are, or a packed file.")] = None,
    training: Annotated[
        Path | None, tyro.conf.arg(help="With a packed file: the training images, for what is fitted on them.")
    ] = None,
    split: Annotated[str | None, tyro.conf.arg(help="Which part; default: test.")] = None,
    count: Annotated[int | None, tyro.conf.arg(help="How many images; default: 2000, or all if fewer.")] = None,
    keypoints: Annotated[int | None, tyro.conf.arg(help="Another number of keypoints than the model's.")] = None,
    seed: Annotated[int, tyro.conf.arg(help="Of the images that are made or chosen.")] = 0,
    batch: Annotated[int, tyro.conf.arg(help="Images at a time: fewer need less memory.")] = 50,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for the results; default runs/evaluate/NAME.")] = None,
    json: Annotated[bool, tyro.conf.arg(help="Print the figures as JSON instead of a table.")] = False,
) -> None:
    """Measure a model as the paper does: labels are used here, and only here."""
    from tusk.evaluation.request import EvaluationRequest, check

    request = EvaluationRequest(data, _text(source), _text(training), split, count, keypoints, seed, batch)
    check(request)  # before the seconds that torch takes
    prepare_torch()
    from rich.console import Console

    import tusk
    from tusk.evaluation.evaluate import evaluate as measure
    from tusk.evaluation.evaluate import prepare
    from tusk.io import atomic_write

    stored = tusk.load(model)
    console = Console(stderr=True, markup=False)  # names may hold brackets
    with _bar(console) as progress:
        job = prepare(stored, request, progress)
        folder = new_folder(Path("runs/evaluate") / data) if out is None else out
        mine = not folder.exists()
        make_folder(folder)
        console.print(f"Results go to {folder}", soft_wrap=True, highlight=False)
        try:
            found = measure(job)
        except BaseException:
            if mine:
                folder.rmdir()  # nothing is in it yet
            raise
    file = folder / "metrics.json"
    text = json_text.dumps(as_json(model, found), indent=2, allow_nan=False) + "\n"
    atomic_write(file, text.encode())
    if json:
        print(text, end="")
    else:
        _print_table(model, found)
    console.print(f"Results are in {file}. Next: tusk detect {model} PICTURES", soft_wrap=True, highlight=False)


def as_json(model: str, found: Evaluation) -> dict[str, Any]:
    """What stands in metrics.json."""
    values = asdict(found)
    values["figures"] = {
        row.name.strip(): {"value": row.value, "unit": row.unit, "paper": row.paper} for row in found.figures
    }
    return {"tusk": __version__, "model": model, **values}


def _print_table(model: str, found: Evaluation) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("in %")
    for heading in (Path(model).name or model, "the paper"):
        table.add_column(heading, justify="right")
    for row in found.figures:
        table.add_row(row.name, _told(row, row.value), _told(row, row.paper))
    console = Console(width=120, highlight=False, markup=False)
    console.print(table)
    console.print(
        f"{found.data}, {found.split}, {found.images} images, seed {found.seed}, {found.keypoints} keypoints, "
        f"{found.types} types, {found.minutes:.2f} minutes",
        f"Measure: {found.protocol}.",
        *(f"Note: {note}." for note in found.notes),
        f"The paper's figures: {found.paper}.",
        sep="\n",
        soft_wrap=True,
    )


def _told(row: Figure, value: float | None) -> str:
    if value is None:
        return ""
    unit = "" if row.unit == "%" else f" {row.unit}"
    return f"{value:.{row.decimals}f}{unit}"


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal; silence elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)

        def update(words: str, done: int, total: int) -> None:
            bar.update(task, description=words, completed=done, total=total)

        yield update


def run(args: Sequence[str]) -> None:
    """Read the flags and do it."""
    from tusk.cli.flags import run_with_flags

    run_with_flags(evaluate, args, "tusk evaluate")
