"""How a training starts: its data opened, its folder made, its processes joined, its seeds one after the other."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from tusk.config import Config
from tusk.data.dataset import Dataset
from tusk.data.listing import FileList, compare, list_files, read_list
from tusk.data.registry import check_data, open_dataset, request_for
from tusk.data.remote import is_url
from tusk.data.sources import located, name_of
from tusk.device import CPU, device_words, use_device
from tusk.errors import DataError, UsageError
from tusk.folders import make_folder, new_folder
from tusk.interrupts import end_in_peace
from tusk.io import atomic_write
from tusk.model.network import check_size
from tusk.model.storage import StoredModel, load_model
from tusk.presets import load_config, to_yaml
from tusk.training.display import ProgressDisplay
from tusk.training.distributed import Ranks, is_restart, join_ranks, launch_name, leave_ranks, lost_process
from tusk.training.footprint import check_memory
from tusk.training.overview import overview_of, write_skipped
from tusk.training.run import Run, ValidationImages, WritePage, sample_validation_images
from tusk.training.seeds import store_seeds, stored_seeds, train_seeds

_COMMAND = "command.txt"  # in a run's folder
_LAUNCH = "launch.txt"  # there too: which start of torchrun made it
_SEEN_WITHIN = 20.0  # seconds: a folder on a network shows a new file a little later elsewhere
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
    notes: tuple[str, ...] = ()  # said before it starts
    preview: bytes | None = None  # a picture of what was decided, where something was
    device: torch.device = CPU  # of this process


@dataclass(frozen=True)
class Opened:
    """The images of a training."""

    training: Dataset
    unseen: Dataset  # for validation: others where tusk makes them, else the same
    files: FileList | None  # that they come from; None where tusk makes them


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
    # A run may be resumed, and its page made, from any current folder.
    data = config.data.model_copy(update={"source": _absolute(config.data.source)})
    return Job(config.model_copy(update={"data": data}), folder, command, several, tensorboard, out is not None)


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
    use_device(job.device)
    ranks, folder = join_ranks(job.device), None
    try:
        show = ProgressDisplay(Console(stderr=True), quiet=quiet or not ranks.is_main)
        # Whatever can be refused is refused before a folder is made, and on all processes where it is on one.
        data, memory = ranks.together(lambda: _prepare(job, ranks))
        if not ranks.same(None if data.files is None else data.files.content_checksum):
            ranks.together(_refuse_unlike)
        folder, resume = ranks.broadcast(lambda: (job.folder, True) if job.resume else _begin(job, data.files))
        job = replace(job, folder=folder, resume=resume)
        _check_shared(folder, ranks)
        show.say(f"Results go to {folder}")
        if resume:
            ranks.broadcast(lambda: _check_pictures(folder, data.files, show.say))
        show.say(_runs_on(job, ranks))
        for note in job.notes:
            show.say(note)
        if ranks.is_main:
            seen = overview_of(job.config, data.training)
            for line in seen.lines(write_skipped(seen, folder)):
                show.say(line)
        show.say(memory)
        verdicts: dict[int, str] = {}  # by seed
        train = _several if job.seeds else _one
        path = train(job, data, pages, ranks, show, verdicts)
        show.say(f"Results are in {job.folder}; open {job.folder / 'report.html'} in a browser to see them")
        # The others may run on machines that do not have the file.
        stored: StoredModel = ranks.broadcast(lambda: load_model(path))
        if (verdict := verdicts.get(stored.provenance.get("seed", -1))) is not None:
            show.say(verdict)
        leave_ranks(together=True)
    except BaseException as error:
        if ranks.world > 1:
            end_in_peace()
        leave_ranks(together=False)  # the others may be stuck: torchrun ends them
        lost = lost_process(error, ranks, folder) if isinstance(error, RuntimeError) else None
        if lost is not None:
            raise lost from error
        raise
    return stored, path if ranks.is_main else None


def _prepare(job: Job, ranks: Ranks) -> tuple[Opened, str]:
    """Open the images, after all checks that take no time; and in words what memory is needed."""
    config = job.config
    check_data(config.data)
    check_size(config.model, config.data.size, config.data.size, config.model.keypoints)
    pairs = config.training.batch // 2
    if pairs % ranks.world:
        why = f"{pairs} pairs of views cannot be shared out equally to {ranks.world} processes"
        raise UsageError("training.batch", why, f"give a multiple of {2 * ranks.world}")
    memory = check_memory(config, ranks.world, job.device)
    return _open(config), memory


def _runs_on(job: Job, ranks: Ranks) -> str:
    """Where it trains, in words."""
    words = f"Training on {device_words(job.device)}"
    return words if ranks.world == 1 else f"{words}, the first of {ranks.world} processes"


def _check_shared(folder: Path, ranks: Ranks) -> None:
    """Refuse to begin where other processes do not see what the main one writes: to resume or to roll back, all read
    the checkpoints."""
    written = ranks.broadcast(lambda: (folder / "config.yaml").read_text(encoding="utf-8"))

    def look() -> None:
        until = time.monotonic() + _SEEN_WITHIN
        while True:
            try:
                if (folder / "config.yaml").read_text(encoding="utf-8") == written:
                    return
            except OSError:
                pass  # it is not there, or not yet
            if time.monotonic() > until:
                why = f"process {ranks.rank} on {socket.gethostname()} does not see what the first process wrote there"
                fix = "give --out a folder that all machines share, by the same path on each"
                raise UsageError(str(folder), why, fix)
            time.sleep(0.2)

    ranks.together(look)


def _refuse_unlike() -> None:
    raise DataError("torchrun", "the processes do not see the same pictures", "give each machine the same files")


def _several(
    job: Job, data: Opened, pages: Pages, ranks: Ranks, show: ProgressDisplay, verdicts: dict[int, str]
) -> Path:
    """One run for each seed, of which the best is kept."""

    def one(seed: int, folder: Path) -> Path:
        # What is there is for the main process to say: the others would look before, or after, it has written there.
        model, begun = ranks.broadcast(
            lambda: ((folder / "model.safetensors").is_file(), (folder / "config.yaml").is_file())
        )
        if model:
            return folder / "model.safetensors"
        training = job.config.training.model_copy(update={"seed": seed})
        config = job.config.model_copy(update={"training": training})
        own = replace(job, config=config, folder=folder, seeds=(), named=True, resume=begun)
        if not begun:
            ranks.broadcast(lambda: _write_beginning(own, data.files))
        return _one(own, ranks.together(lambda: _open(config)), pages, ranks, show, verdicts)

    return train_seeds(job.folder, list(job.seeds), one, writes=ranks.is_main, say=show.say)


def _one(job: Job, data: Opened, pages: Pages, ranks: Ranks, show: ProgressDisplay, verdicts: dict[int, str]) -> Path:
    """Train one seed; the verdict of its page goes into `verdicts`."""
    config = job.config
    images = sample_validation_images(data.unseen)
    page = pages(job, data.unseen, images)
    run = Run(
        config, job.folder, data.training, images, show, job.command, ranks, job.tensorboard, page, device=job.device
    )
    path = run.train(resume=job.resume)
    if run.verdict is not None:
        verdicts[config.training.seed] = run.verdict
    return path


def _open(config: Config) -> Opened:
    """The images to train on, and those for validation."""
    data = config.data
    request = request_for(data, source=data.sources, split="train", seed=config.training.seed)
    # A made dataset is another one with another seed; a folder of pictures is what it is.
    other = replace(request, seed=config.training.seed + _OTHER_IMAGES)
    training, unseen = open_dataset(data.dataset, request), open_dataset(data.dataset, other)
    return Opened(training, unseen, list_files(training, data.source))


def _run_name(config: Config) -> str:
    return name_of(config.data.sources) if config.data.sources else config.data.dataset


def _absolute(source: Any) -> Any:
    """A path, or several of them, so that they mean the same in any current folder."""
    if source is None or isinstance(source, str | os.PathLike):
        url = source is not None and is_url(str(source))
        return source if source is None or url else located(os.fspath(source))
    return type(source)(_absolute(one) for one in source)


def _begin(job: Job, files: FileList | None) -> tuple[Path, bool]:
    """A folder for the run, and whether it was begun there before: where torchrun starts its processes again."""
    own = _of_this_launch(job)
    if own is not None and (own / "config.yaml").is_file():
        return own, True
    folder = own
    if folder is None:
        folder = job.folder if job.named else new_folder(job.folder)
        make_folder(folder)
    _write_beginning(replace(job, folder=folder), files)
    return folder, False


def _of_this_launch(job: Job) -> Path | None:
    """The folder that this start of torchrun made before one of its processes died; another's is never taken."""
    launch = launch_name()
    if launch is None or not is_restart():
        return None
    number, folder = 1, job.folder
    while folder.exists():
        marker = folder / _LAUNCH
        if marker.is_file() and marker.read_text(encoding="utf-8") == launch:
            return folder
        if job.named:
            return None
        number += 1
        folder = job.folder.with_name(f"{job.folder.name}-{number}")
    return None


def _write_beginning(job: Job, files: FileList | None) -> None:
    """What a run is, into its folder; its configuration last, so that a folder with one holds all of it."""
    folder = job.folder
    folder.mkdir(exist_ok=True)
    launch = launch_name()
    if launch is not None:
        atomic_write(folder / _LAUNCH, launch.encode())
    atomic_write(folder / _COMMAND, f"{job.command}\n".encode(errors="backslashreplace"))
    if files is not None:
        files.write(folder)
    if job.preview is not None:
        atomic_write(folder / "preview.png", job.preview)
    if job.seeds:
        store_seeds(folder, list(job.seeds))
    atomic_write(folder / "config.yaml", to_yaml(job.config).encode())


def _check_pictures(folder: Path, files: FileList | None, say: Callable[[str], None]) -> None:
    """Refuse to go on with other pictures than those that the run began with."""
    if files is None:
        return
    before = read_list(folder)
    if before is None:
        say("This run does not say which pictures it began with (an older tusk made it): it goes on with those there.")
        files.write(folder)
        return
    changes = compare(before, files)
    if changes.are_others:
        why = f"its pictures are not those that it began with ({changes.words})"
        raise DataError(str(folder), why, "put those back, or start a new run")
    if changes.redated:
        were = "picture was" if changes.redated == 1 else "pictures were"
        say(f"{changes.redated} {were} written to since the run began, and found to be the same.")
