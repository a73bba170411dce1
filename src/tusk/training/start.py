"""How a training starts: its data opened, its folder made, its processes joined, its seeds one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from tusk.config import Config
from tusk.data.dataset import Dataset
from tusk.data.registry import check_data, open_dataset, request_for
from tusk.errors import DataError, UsageError
from tusk.folders import make_folder, new_folder
from tusk.model.network import check_size
from tusk.model.storage import StoredModel, load_model
from tusk.presets import load_config, to_yaml
from tusk.training.display import ProgressDisplay
from tusk.training.distributed import Ranks, join_ranks, leave_ranks
from tusk.training.run import Run, ValidationImages, WritePage, sample_validation_images
from tusk.training.seeds import store_seeds, stored_seeds, train_seeds

_COMMAND = "command.txt"  # in a run's folder
_OTHER_IMAGES = 1_000_003  # added to the seed: images for validation are others than those of the training


@dataclass(frozen=True)
class Job:
    """A training that was asked for."""

    config: Config
    folder: Path
    command: str  # what the model file says about how it was made
    seeds: tuple[int, ...] = ()  # empty for a single run
    tensorboard: bool = False
    named: bool = True  # the folder's name was given; otherwise a number is appended where it exists
    resume: bool = False


Pages = Callable[[Job, Dataset, ValidationImages], WritePage]  # who writes the page of a run


def new_job(
    config: Config, command: str, *, out: Path | None = None, seeds: int | None = None, tensorboard: bool = False
) -> Job:
    """A training in a new folder, of one seed or of several."""
    if seeds is not None and seeds < 1:
        raise UsageError("seeds", f"{seeds} runs cannot be trained", "give 1 or more")
    folder = out or Path("runs/train") / _run_name(config)
    first = config.training.seed
    several = () if seeds is None else tuple(range(first, first + seeds))
    # torchrun starts everything again when a process dies: then the run goes on.
    resume = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0 and (folder / "config.yaml").exists()
    return Job(config, folder, command, several, tensorboard, out is not None, resume)


def resumed_job(folder: Path, command: str, *, tensorboard: bool = False) -> Job:
    """The training in a folder, with its own settings."""
    file = folder / "config.yaml"
    if not file.is_file():
        raise DataError(str(folder), "there is no run in it (no config.yaml)", "name the folder of a run")
    if (folder / _COMMAND).is_file():
        # What a model comes from is how its run began.
        command = (folder / _COMMAND).read_text(encoding="utf-8").strip()
    return Job(load_config(None, file), folder, command, tuple(stored_seeds(folder)), tensorboard, resume=True)


def run_job(job: Job, pages: Pages, *, quiet: bool = False) -> tuple[StoredModel, Path | None]:
    """Train to the end -> the model and its file; other processes than the main one have no file."""
    # Whatever can be refused is refused before a folder is made.
    config = job.config
    check_data(config.data)
    check_size(config.model, config.data.size, config.data.size, config.model.keypoints)
    data = _open(config)
    ranks = join_ranks()
    try:
        if not job.resume:
            job = replace(job, folder=ranks.broadcast(lambda: _fresh(job)))
        show = ProgressDisplay(Console(stderr=True), quiet=quiet or not ranks.is_main)
        show.say(f"Results go to {job.folder}")
        path = _several(job, pages, ranks, show) if job.seeds else _one(job, data, pages, ranks, show)
        show.say(f"Results are in {job.folder}; open {job.folder / 'report.html'} in a browser to see them")
        # The others may run on machines that do not have the file.
        stored: StoredModel = ranks.broadcast(lambda: load_model(path))
        leave_ranks(together=True)
    except BaseException:
        leave_ranks(together=False)  # the others may be stuck: torchrun ends them
        raise
    return stored, path if ranks.is_main else None


def _several(job: Job, pages: Pages, ranks: Ranks, show: ProgressDisplay) -> Path:
    """One run for each seed, of which the best is kept."""

    def one(seed: int, folder: Path) -> Path:
        if (folder / "model.safetensors").is_file():
            return folder / "model.safetensors"
        training = job.config.training.model_copy(update={"seed": seed})
        config = job.config.model_copy(update={"training": training})
        own = replace(
            job, config=config, folder=folder, seeds=(), named=True, resume=(folder / "config.yaml").is_file()
        )
        if not own.resume:
            ranks.broadcast(lambda: _fresh(own))
        return _one(own, _open(config), pages, ranks, show)

    return train_seeds(job.folder, list(job.seeds), one, writes=ranks.is_main, say=show.say)


def _one(job: Job, data: Sequence[Dataset], pages: Pages, ranks: Ranks, show: ProgressDisplay) -> Path:
    config, (dataset, unseen) = job.config, data
    what, each = ("images", "")
    if config.data.fit == "tiles":
        what, each = f"{config.data.size}-pixel tiles", " in each"
    keypoints, types = config.model.keypoints, config.model.types
    show.say(f"{len(dataset)} {what} of {dataset.name}, {keypoints} keypoints{each}, {types} types")
    images = sample_validation_images(unseen)
    run = Run(
        config, job.folder, dataset, images, show, job.command, ranks, job.tensorboard, pages(job, unseen, images)
    )
    return run.train(resume=job.resume)


def _open(config: Config) -> tuple[Dataset, Dataset]:
    """The images to train on, and those for validation: others where tusk makes them, else the same."""
    data = config.data
    source = None if data.source is None else str(data.source)
    request = request_for(data, source=source, split="train", seed=config.training.seed)
    # A made dataset is another one with another seed; a folder of pictures is what it is.
    other = replace(request, seed=config.training.seed + _OTHER_IMAGES)
    return open_dataset(data.dataset, request), open_dataset(data.dataset, other)


def _run_name(config: Config) -> str:
    return config.data.dataset if config.data.source is None else config.data.source.resolve().stem or "pictures"


def _fresh(job: Job) -> Path:
    """A folder for a new run, with its configuration in it."""
    folder = job.folder if job.named else new_folder(job.folder)
    make_folder(folder)
    (folder / _COMMAND).write_text(f"{job.command}\n", encoding="utf-8")
    (folder / "config.yaml").write_text(to_yaml(job.config), encoding="utf-8")
    if job.seeds:
        store_seeds(folder, list(job.seeds))
    return folder
