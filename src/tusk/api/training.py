"""Training from Python and from the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tusk.api.model import Model
from tusk.config.data import Frames
from tusk.data.dataset import Dataset
from tusk.data.sources import source_paths
from tusk.device import choose_device
from tusk.errors import UsageError, UserError
from tusk.presets import merge
from tusk.report.build import training_pages
from tusk.report.preview import preview_png
from tusk.report.sample import Sample
from tusk.report.subject import LEARNT_FROM, NOT_LEARNT_FROM, Images
from tusk.training.distributed import refuse_together, several_processes
from tusk.training.preview import Preview
from tusk.training.run import ValidationImages, WritePage
from tusk.training.settings import choose_settings
from tusk.training.start import Job, new_job, resumed_job, run_job

PathLike = str | os.PathLike[str]
_SHOWN = 8  # sources that the call names


def train(
    source: PathLike | Sequence[PathLike] | None = None,
    *,
    preset: str | None = None,
    config: PathLike | None = None,
    keypoints: int | None = None,
    types: int | Literal["auto"] | None = None,
    thing_size: float | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    frames: Frames | None = None,
    seeds: int | None = None,
    out: PathLike | None = None,
    resume: PathLike | None = None,
    tensorboard: bool = False,
    device: str = "auto",
    progress: bool = True,
    command: str | None = None,
    **settings: Any,
) -> Model:
    """Learn from images without labels; -> the trained model.

    source: a folder, file, glob or list of pictures, or a Python list of such; a packed file, or a dataset's name;
    preset: where the settings start from (by default that of the dataset, or the one for pictures); config: a YAML file
    of settings over it; keypoints: at most how many keypoints in an image; types: how many types of things there are,
    or 'auto' (the default for pictures of one's own); thing_size: diameter of a usual thing in pixels, if you know it;
    minutes: stop after this time at the latest; seed: of everything random; frames: 'first' or 'all' of a TIFF or GIF
    that holds several; seeds: train with so many seeds, one after the other, and keep the best, judged without labels;
    out: folder for the results, by default a new one under runs/train; resume: the folder of a run that stopped, to go
    on with (and nothing else but a device); device: 'cpu', 'cuda', 'cuda:1', 'mps', or 'auto' for a GPU where there is
    one (under torchrun, one for each process); progress: False says nothing; command: what the model says about how it
    was made; settings: any other setting by its part, such as `training={"steps": 100}`.

    Stopped by Ctrl-C, it saves everything first; `resume` goes on from there.
    """
    short: dict[str, dict[str, float | str | None]] = {
        "model": {"keypoints": keypoints, "types": None if types == "auto" else types},
        "training": {"minutes": minutes, "seed": seed},
        "data": {"frames": frames},
    }
    given = {part: {name: value for name, value in own.items() if value is not None} for part, own in short.items()}
    chosen = merge(_checked(settings, given), {part: own for part, own in given.items() if own})
    if "types" in chosen.get("model", {}):
        # Whoever names their number wants just so many.
        chosen = merge({"training": {"merge_types": False}}, chosen)
    sources = () if source is None else source_paths(source)
    if command is None:
        command = _call(sources, {"preset": preset, "config": config, **chosen, "seeds": seeds})
    seen: Preview | None = None
    try:
        place = choose_device(device)
        if resume is not None:
            if source is not None or preset or config or chosen or thing_size or seeds is not None or out is not None:
                raise UsageError(
                    "resume", "it goes on with the run's own settings, but others were given", "leave them out"
                )
            job = resumed_job(Path(resume), command, tensorboard=tensorboard)
        else:
            file = None if config is None else Path(config)
            choice = choose_settings(sources, preset, file, chosen, "train", thing_size)
            seen = choice.preview
            folder = None if out is None else Path(out)
            job = new_job(choice.config, command, out=folder, seeds=seeds, tensorboard=tensorboard)
            if seen is not None:
                job = replace(job, notes=tuple(seen.sentences()), preview=preview_png(seen))
    except UserError as error:
        if several_processes():
            refuse_together(error)
        raise
    stored, path = run_job(replace(job, device=place), _pages, quiet=not progress)
    return Model(stored, path, "model" if path is None else str(path)).to(place)


def _checked(settings: Mapping[str, Any], short: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    for part, values in settings.items():
        if not isinstance(values, Mapping):
            raise UsageError(f"train: {part}", "it is not a part of the settings", "see 'tusk config' for all of them")
        for name in values.keys() & short.get(part, {}).keys():
            why = f"it is given beside {part}={{'{name}': ...}}, which means the same"
            raise UsageError(f"train: {name}", why, "leave one of them out")
    return dict(settings)


def _call(sources: Sequence[str], given: Mapping[str, Any]) -> str:
    """The call as Python code; of a thousand files the first will do, config.yaml has all of them."""
    shown = ", ".join(map(repr, sources[:_SHOWN])) + (", ..." if len(sources) > _SHOWN else "")
    first = [] if not sources else [shown if len(sources) == 1 else f"[{shown}]"]
    return f"tusk.train({', '.join(first + [f'{name}={value!r}' for name, value in given.items() if value])})"


def _pages(job: Job, unseen: Dataset, images: ValidationImages) -> WritePage:
    """The page of a run is about the images for validation; those that tusk makes are others than the training's."""
    truths = images.truths if len(images.truths) == len(images.images) else ()
    sample = Sample(unseen.name, images.images, truths, unseen.class_names)
    origin = LEARNT_FROM if job.config.data.source else NOT_LEARNT_FROM
    shown = Images(sample, f"of {unseen.name}{origin}")
    return training_pages(job.folder / "report.html", job.config, shown, job.command)
