"""Training from Python and from the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tusk.api.model import Model
from tusk.data.dataset import Dataset
from tusk.errors import UsageError
from tusk.presets import merge
from tusk.report.build import training_pages
from tusk.report.sample import Sample
from tusk.report.subject import LEARNT_FROM, NOT_LEARNT_FROM, Images
from tusk.training.run import ValidationImages, WritePage
from tusk.training.settings import choose_settings
from tusk.training.start import Job, new_job, resumed_job, run_job

PathLike = str | os.PathLike[str]


def train(
    source: PathLike | None = None,
    *,
    preset: str | None = None,
    config: PathLike | None = None,
    keypoints: int | None = None,
    types: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    out: PathLike | None = None,
    resume: PathLike | None = None,
    tensorboard: bool = False,
    progress: bool = True,
    command: str | None = None,
    **settings: Any,
) -> Model:
    """Learn from images without labels; -> the trained model.

    source: a folder, file, glob or list of pictures, a packed file, or a dataset's name; preset: where the settings
    start from (by default that of the dataset, or the one for pictures); config: a YAML file of settings over it;
    keypoints: at most how many keypoints in an image; types: how many types of things there are; minutes: stop after
    this time at the latest; seed: of everything random; seeds: train with so many seeds, one after the other, and keep
    the best, judged without labels; out: folder for the results, by default a new one under runs/train; resume: the
    folder of a run that stopped, to go on with (and nothing else); progress: False says nothing; command: what the
    model says about how it was made; settings: any other setting by its part, such as `training={"steps": 100}`.

    Stopped by Ctrl-C, it saves everything first; `resume` goes on from there.
    """
    short: dict[str, dict[str, float | None]] = {
        "model": {"keypoints": keypoints, "types": types},
        "training": {"minutes": minutes, "seed": seed},
    }
    given = {part: {name: value for name, value in own.items() if value is not None} for part, own in short.items()}
    chosen = merge(_checked(settings), {part: own for part, own in given.items() if own})
    if command is None:
        command = _call(source, {"preset": preset, "config": config, **chosen, "seeds": seeds})
    if resume is not None:
        if source is not None or preset or config or chosen or seeds is not None or out is not None:
            raise UsageError(
                "resume", "it goes on with the run's own settings, but others were given", "leave them out"
            )
        job = resumed_job(Path(resume), command, tensorboard=tensorboard)
    else:
        file = None if config is None else Path(config)
        whole = choose_settings(None if source is None else _path(source), preset, file, chosen, "train")
        place = None if out is None else Path(out)
        job = new_job(whole, command, out=place, seeds=seeds, tensorboard=tensorboard)
    stored, path = run_job(job, _pages, quiet=not progress)
    return Model(stored, path, "model" if path is None else str(path))


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    for part, values in settings.items():
        if not isinstance(values, Mapping):
            raise UsageError(f"train: {part}", "it is not a part of the settings", "see 'tusk config' for all of them")
    return dict(settings)


def _path(source: Any) -> str:
    if not isinstance(source, str | os.PathLike):
        fix = "give a folder, a glob, a dataset's name, or a text file with one path in each line"
        raise UsageError("source", f"it is a {type(source).__name__}, not a path or name", fix)
    return os.fspath(source)


def _call(source: PathLike | None, given: Mapping[str, Any]) -> str:
    """The call as Python code."""
    first = [] if source is None else [repr(str(source))]
    return f"tusk.train({', '.join(first + [f'{name}={value!r}' for name, value in given.items() if value])})"


def _pages(job: Job, unseen: Dataset, images: ValidationImages) -> WritePage:
    """The page of a run is about the images for validation; those that tusk makes are others than the training's."""
    truths = images.truths if len(images.truths) == len(images.images) else ()
    sample = Sample(unseen.name, images.images, truths, unseen.class_names)
    origin = LEARNT_FROM if job.config.data.source else NOT_LEARNT_FROM
    shown = Images(sample, f"of {unseen.name}{origin}")
    return training_pages(job.folder / "report.html", job.config, shown, job.command)
