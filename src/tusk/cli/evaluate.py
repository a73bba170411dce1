"""`tusk evaluate MODEL --data NAME`: the paper's measures, beside the paper's figures."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from tusk.cli.flags import Device, run_with_flags, take_settings


def evaluate(
    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="A model's name, its file, or a run's folder.")],
    data: Annotated[str, tyro.conf.arg(help="The dataset, by its name: see 'tusk data list'.")],
    source: Annotated[str | None, tyro.conf.arg(help="Where the originals are, or a packed file.")] = None,
    training: Annotated[
        str | None, tyro.conf.arg(help="With a packed file: the training images, for what is fitted on them.")
    ] = None,
    split: Annotated[str | None, tyro.conf.arg(help="Which part; default: test.")] = None,
    count: Annotated[int | None, tyro.conf.arg(help="How many images; default: 2000, or all if fewer.")] = None,
    keypoints: Annotated[int | None, tyro.conf.arg(help="Another number of keypoints than the model's.")] = None,
    seed: Annotated[int, tyro.conf.arg(help="Of the images that are made or chosen.")] = 0,
    min_score: Annotated[float | None, tyro.conf.arg(help="Leave out detections of a lower score, 0 to 1.")] = None,
    min_gain: Annotated[
        float | None, tyro.conf.arg(help="Leave out detections of a lower gain; default: the model's own.")
    ] = None,
    batch: Annotated[int, tyro.conf.arg(help="Images at a time: fewer need less memory.")] = 50,
    out: Annotated[Path | None, tyro.conf.arg(help="Folder for the results; default runs/evaluate/NAME.")] = None,
    json: Annotated[bool, tyro.conf.arg(help="Print the figures as JSON instead of a table.")] = False,
    device: Device = "auto",
    detection: tyro.conf.Suppress[dict[str, Any] | None] = None,
) -> None:
    """Measure a model as the paper does: labels are used here, and only here.

    --detection.SETTING VALUE sets any detection setting over the model's own: see 'tusk config --help'.
    """
    from tusk.api.model import load
    from tusk.api.runs import prepare_torch, say_device
    from tusk.folders import results_folder
    from tusk.io import atomic_write
    from tusk.progress import stderr_console

    prepare_torch()
    console = stderr_console()
    settings = dict(detection or {})
    if min_gain is None:
        min_gain = settings.pop("min_gain", None)
    with results_folder(out, Path("runs/evaluate") / data) as folder:
        figures = say_device(load(model, device)).evaluate(
            data,
            source,
            count,
            seed,
            training=training,
            split=split,
            keypoints=keypoints,
            min_score=min_score,
            min_gain=min_gain,
            batch=batch,
            started=lambda: console.print(f"Results go to {folder.make()}"),
            **settings,
        )
        text = json_text.dumps(figures.to_dict(), indent=2, allow_nan=False) + "\n"
        atomic_write(folder.path / "metrics.json", text.encode())
    print(text if json else figures, end="" if json else "\n")
    console.print(f"Results are in {folder.path / 'metrics.json'}. Next: tusk detect {model} PICTURES")


def run(args: Sequence[str]) -> None:
    rest, settings = take_settings(args, "detection")
    run_with_flags(evaluate, rest, "tusk evaluate", detection=settings)
