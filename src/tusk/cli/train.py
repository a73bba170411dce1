"""`tusk train [SOURCE] --preset NAME --keypoints K --types M ...`, and `tusk train --resume RUN`."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tusk.cli.flags import config_from_flags
from tusk.cli.main import make_folder, new_folder, prepare_torch
from tusk.config import Config, DataConfig
from tusk.errors import DataError, UsageError, UserError
from tusk.presets import load_config, to_yaml
from tusk.training.seeds import store_seeds, stored_seeds, train_seeds

if TYPE_CHECKING:
    from tusk.data.dataset import Dataset
    from tusk.training.display import ProgressDisplay
    from tusk.training.distributed import Ranks

_HELP = """\
usage: tusk train [SOURCE] [flags]       tusk train --resume RUN

  SOURCE           a folder, file, glob or list of pictures, a packed file, or a dataset's name ('tusk data list')
  --preset NAME    where the settings start from: see 'tusk presets'
  --config FILE    settings in YAML, over the preset's
  --keypoints K    how many things to look for in an image
  --types M        how many kinds of things there are
  --minutes N      stop after this time at the latest
  --seed N         seed of everything random
  --seeds N        train with this many seeds, one after the other, and keep the best, judged without labels
  --out DIR        folder for the results; default runs/train/NAME
  --resume RUN     go on with a run that stopped
  --tensorboard    also log for TensorBoard
  --PART.SETTING   any single setting: see 'tusk config --help'
"""
_COMMAND = "command.txt"  # in a run's folder
_SHORT = {
    "--keypoints": "--model.keypoints",
    "--types": "--model.types",
    "--minutes": "--training.minutes",
    "--seed": "--training.seed",
}


# A preset for images of scattered things takes pictures of any size in pieces that are as large as those images, and
# makes them as contrasty.
_AS_SCATTERED = ["--data.fit", "tiles", "--data.contrast", "full"]


def run(args: Sequence[str]) -> None:
    """Train; the model's path goes to stdout."""
    if "--help" in args or "-h" in args:
        print(_HELP, end="")
        return
    flags = argparse.ArgumentParser(prog="tusk train", add_help=False, allow_abbrev=False, exit_on_error=False)
    flags.add_argument("--out", type=Path)
    flags.add_argument("--resume", type=Path)
    flags.add_argument("--tensorboard", action="store_true")
    flags.add_argument("--seeds", type=int)
    try:
        chosen, rest = flags.parse_known_args(list(args))
    except argparse.ArgumentError as error:
        raise UsageError("flags of 'tusk train'", str(error), "see 'tusk train --help'") from error
    if chosen.resume is not None:
        if rest or chosen.out is not None or chosen.seeds is not None:
            given = " ".join([*rest, *(["--out"] if chosen.out else []), *(["--seeds"] if chosen.seeds else [])])
            raise UsageError(
                "--resume", f"it goes on with the run's own settings, but {given} was given", "leave that out"
            )
        folder, config, resume = chosen.resume, _stored_config(chosen.resume), True
        seeds = stored_seeds(folder)
    else:
        if chosen.seeds is not None and chosen.seeds < 1:
            raise UsageError("--seeds", f"{chosen.seeds} runs cannot be trained", "give 1 or more")
        config = _config(rest)
        folder = chosen.out or Path("runs/train") / _run_name(config)
        # torchrun starts everything again when a process dies: then the run goes on.
        resume = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0 and (folder / "config.yaml").exists()
        first = config.training.seed
        seeds = [] if chosen.seeds is None else list(range(first, first + chosen.seeds))
    command = shlex.join(["tusk", "train", *args])
    if chosen.resume is not None and (folder / _COMMAND).is_file():
        # What a model comes from is how its run began.
        command = (folder / _COMMAND).read_text(encoding="utf-8").strip()
    job = Job(config, folder, command, seeds, chosen.tensorboard)
    _train(job, resume=resume, named=chosen.out is not None)


@dataclass(frozen=True)
class Job:
    """What `tusk train` was asked for."""

    config: Config
    folder: Path
    command: str
    seeds: list[int]  # empty for a single run
    tensorboard: bool


def _train(job: Job, *, resume: bool, named: bool) -> None:
    prepare_torch()
    from rich.console import Console

    from tusk.model.network import check_size
    from tusk.training.display import ProgressDisplay
    from tusk.training.distributed import join_ranks, leave_ranks

    # Whatever can be refused is refused before a folder is made.
    config = job.config
    _check_pictures(config.data)
    check_size(config.model, config.data.size, config.data.size, config.model.keypoints)
    data = _open(config)
    ranks = join_ranks()
    try:
        folder = job.folder
        if not resume:
            folder = ranks.broadcast(lambda: _fresh(folder, named, job))
        show = ProgressDisplay(Console(stderr=True), quiet=not ranks.is_main)
        show.say(f"Results go to {folder}")
        if job.seeds:

            def one(seed: int, place: Path) -> Path:
                if (place / "model.safetensors").is_file():
                    return place / "model.safetensors"
                own = config.model_copy(update={"training": config.training.model_copy(update={"seed": seed})})
                begun = (place / "config.yaml").is_file()
                if not begun:
                    ranks.broadcast(lambda: _fresh(place, True, replace(job, config=own, seeds=[])))
                return _one(replace(job, config=own, folder=place), _open(own), ranks, show, resume=begun)

            path = train_seeds(folder, job.seeds, one, writes=ranks.is_main, say=show.say)
        else:
            path = _one(replace(job, folder=folder), data, ranks, show, resume=resume)
        if ranks.is_main:
            show.say(f"Results are in {folder}; open {folder / 'report.html'} in a browser to see them")
            print(path)
        leave_ranks(together=True)
    except BaseException:
        leave_ranks(together=False)  # the others may be stuck: torchrun ends them
        raise


def _one(job: Job, data: tuple[Dataset, Dataset], ranks: Ranks, show: ProgressDisplay, *, resume: bool) -> Path:
    from tusk.report.build import training_pages
    from tusk.report.sample import Sample
    from tusk.report.subject import LEARNT_FROM, NOT_LEARNT_FROM, Images
    from tusk.training.run import Run, sample_validation_images

    config, (dataset, unseen) = job.config, data
    what, each = ("images", "")
    if config.data.fit == "tiles":
        what, each = f"{config.data.size}-pixel pieces", " in each"
    keypoints, types = config.model.keypoints, config.model.types
    show.say(f"{len(dataset)} {what} of {dataset.name}, {keypoints} keypoints{each}, {types} types")
    look = sample_validation_images(unseen)
    truths = look.truths if len(look.truths) == len(look.images) else ()
    # As `_open` has it: images that tusk makes are others than those of the training.
    origin = LEARNT_FROM if config.data.source else NOT_LEARNT_FROM
    sample = Sample(unseen.name, look.images, truths, unseen.class_names)
    images = Images(sample, f"of {unseen.name}{origin}")
    pages = training_pages(job.folder / "report.html", config, images, job.command)
    run = Run(config, job.folder, dataset, look, show, job.command, ranks, job.tensorboard, pages)
    return run.train(resume=resume)


def _open(config: Config) -> tuple[Dataset, Dataset]:
    """The images to train on, and those for a look at how it goes: others where tusk makes them, else the same."""
    from tusk.data.registry import open_dataset, request_for

    data = config.data
    source = None if data.source is None else str(data.source)
    request = request_for(data, source=source, split="train", seed=config.training.seed)
    # A made dataset is another one with another seed; a folder of pictures is what it is.
    other = replace(request, seed=config.training.seed + 1_000_003)
    return open_dataset(data.dataset, request), open_dataset(data.dataset, other)


def _config(args: list[str]) -> Config:
    """The configuration from SOURCE and flags."""
    source = None
    if args and not args[0].startswith("-"):
        source, args = args[0], args[1:]
    longer = [_SHORT.get(word, word) for word in args]
    for short, long in _SHORT.items():
        longer = [word.replace(f"{short}=", f"{long}=", 1) if word.startswith(f"{short}=") else word for word in longer]
    if source is None:
        return config_from_flags(longer, "tusk train")
    from tusk.data.registry import DATASETS

    if source in DATASETS and not Path(source).exists():
        preset = [] if "--preset" in longer or source not in _preset_folders() else ["--preset", source]
        return config_from_flags([*preset, *longer, "--data.dataset", source], "tusk train")
    preset = [] if "--preset" in longer else ["--preset", "folder"]
    longer = [*preset, *longer, "--data.source", source]
    config = config_from_flags(longer, "tusk train")
    if not any(word.partition("=")[0] == "--data.dataset" for word in longer) and _just_pictures(config):
        first = [] if "--config" in longer or not DATASETS[config.data.dataset].scattered else _AS_SCATTERED
        config = config_from_flags([*first, *longer, "--data.dataset", "folder"], "tusk train")
    return config


def _check_pictures(data: DataConfig) -> None:
    """Refuse what would have no effect."""
    from tusk.data.registry import is_packed

    pictures = data.dataset == "folder" and not is_packed(None if data.source is None else str(data.source))
    if not pictures and data.fit == "tiles":
        raise UsageError("data.fit", "'tiles' is for picture files, and these images are ready-made", "leave it out")
    if not pictures and data.contrast == "full":
        raise UsageError(
            "data.contrast", "'full' is for picture files, and these images are ready-made", "leave it out"
        )
    if data.scale != 1 and data.fit != "tiles":
        why = f"{data.scale:g} has no effect with data.fit '{data.fit}', which scales by itself"
        raise UsageError("data.scale", why, "leave it out, or set data.fit to 'tiles'")


def _just_pictures(config: Config) -> bool:
    """Is the source no original of the preset's own dataset, but pictures that its settings may be tried on?"""
    from tusk.data.registry import Request, open_dataset
    from tusk.data.sources import find_files

    source = str(config.data.source)
    if config.data.dataset == "folder":
        return False
    try:
        open_dataset(config.data.dataset, Request(source=source))
    except UserError:
        try:
            return bool(find_files(source).files)
        except UserError:
            return False
    return False


def _preset_folders() -> set[str]:
    from tusk.presets import preset_names

    return {name.partition("/")[0] for name in preset_names()}


def _run_name(config: Config) -> str:
    return config.data.dataset if config.data.source is None else config.data.source.resolve().stem or "pictures"


def _fresh(folder: Path, named: bool, job: Job) -> Path:
    """A folder for a new run, with its configuration in it."""
    if not named:
        folder = new_folder(folder)
    make_folder(folder)
    (folder / _COMMAND).write_text(f"{job.command}\n", encoding="utf-8")
    (folder / "config.yaml").write_text(to_yaml(job.config), encoding="utf-8")
    if job.seeds:
        store_seeds(folder, job.seeds)
    return folder


def _stored_config(folder: Path) -> Config:
    file = folder / "config.yaml"
    if not file.is_file():
        raise DataError(str(folder), "there is no run in it (no config.yaml)", "name the folder of a run")
    return load_config(None, file)
