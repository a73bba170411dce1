"""A whole training: images in, checkpoints and a model out, whatever happens in between.

tusk train photos/ --model.keypoints 9 --model.types 10                 # one process, every core
torchrun --nproc-per-node 2 -m tusk train photos/ ...                   # several processes or machines
tusk train --resume runs/train/photos                                   # go on where it stopped
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tusk.config import Config
from tusk.data.dataset import Dataset, Truth
from tusk.data.loader import Loader
from tusk.detection.settings import settings_from
from tusk.detection.threshold import least_gain
from tusk.device import CPU, Place
from tusk.errors import StoppedError, UserError
from tusk.interrupts import StopSignals, stop_signals
from tusk.model.network import Network
from tusk.model.storage import StoredModel, save_model
from tusk.presets import to_yaml
from tusk.training.checkpoint import Checkpoints
from tusk.training.display import ProgressDisplay
from tusk.training.distributed import Ranks
from tusk.training.figures import task_figures
from tusk.training.logging import RunLog
from tusk.training.merging import merge_types
from tusk.training.trainer import NotFiniteError, StepReport, Trainer
from tusk.training.validation import ValidationFigures, validate

_VALIDATED_ON = 200  # images
_COUNTED = 100  # of them for the least gain of an object
_LOG_EVERY = 10
_MOST_WORKERS = 8  # for a GPU
_ROLLBACKS = 3
_STEPS_WAITED = 3  # times as long as the slowest step so far: then a step that was asked to stop ends unfinished


@dataclass(frozen=True)
class ValidationImages:
    """Images that training does not use, and the truth about them where there is any, for display only."""

    images: Tensor  # (N, 3, H, W), uint8
    truths: tuple[Truth, ...]
    class_count: int


def sample_validation_images(dataset: Dataset, count: int = _VALIDATED_ON) -> ValidationImages:
    """Images from all over a dataset: neighbours may be tiles of one picture."""
    count = min(count, len(dataset))
    places = [place * len(dataset) // count for place in range(count)]
    original = getattr(dataset, "original", dataset)
    if hasattr(original, "sample_places"):  # of millions, those that are near at hand
        places = original.sample_places(count).tolist()
    pixels = np.stack([dataset.image(index) for index in places])
    truths = tuple(truth for truth in map(dataset.truth, places) if truth is not None)
    return ValidationImages(torch.from_numpy(pixels).permute(0, 3, 1, 2), truths, len(dataset.class_names))


@dataclass(frozen=True)
class TrainingState:
    """How far a training is when its page is written."""

    step: int  # of the weights
    seconds: float
    finished: bool
    validation: ValidationFigures | None  # where it was validated just now
    least_gain: float | None = None  # of a detection, where the training is finished
    type_tree: tuple[tuple[int, int, float], ...] | None = None  # how types were merged, where they were


WritePage = Callable[[Network, TrainingState], str | None]  # -> what the page says in one sentence


@dataclass
class Run:
    """One training in a folder."""

    config: Config
    folder: Path
    dataset: Dataset
    validation: ValidationImages
    show: ProgressDisplay
    command: str
    ranks: Ranks
    tensorboard: bool = False
    write_page: WritePage | None = None  # after every validation; it must change neither the network nor random numbers
    verdict: str | None = None  # what the last page says in one sentence
    device: torch.device = CPU  # of this process

    def train(self, *, resume: bool) -> Path:
        """Train to the end; -> the model file."""
        trainer = Trainer(self.config, self.ranks, self.device)
        checkpoints = Checkpoints(self.folder / "checkpoints", self._config_text(), self.config.training.keep_every)
        seconds, rollbacks = 0.0, 0
        if resume and self.ranks.broadcast(lambda: checkpoints.manifest() is not None):
            manifest = checkpoints.restore(trainer)
            seconds, rollbacks = manifest.seconds, manifest.rollbacks
        elif self.ranks.is_main:
            checkpoints.save(trainer, seconds=0.0)

        with ExitStack() as stack:  # whatever happens: workers ended, logs closed, and then signals as they were
            stop = stack.enter_context(self._stop_signals())
            log = None
            if self.ranks.is_main:
                log = RunLog(self.folder, resumed_at=trainer.step if resume else None, tensorboard=self.tensorboard)
                stack.callback(log.close)
            started = time.monotonic() - seconds
            loader = self._loader(trainer)
            stack.callback(lambda: loader.close())  # the one that is in use then
            stack.enter_context(self.show)
            slowest = 0.0  # seconds of a step
            while (progress := self._progress(trainer, time.monotonic() - started)) < 1:
                began = time.monotonic()
                try:
                    with stop.limited(_STEPS_WAITED * slowest):
                        report = trainer.train_step(next(loader).images, progress)
                except torch.OutOfMemoryError as error:
                    raise no_room(self.config, self.device) from error
                except NotFiniteError as error:
                    rollbacks += 1
                    if rollbacks > _ROLLBACKS:
                        raise
                    loader.close()
                    self._roll_back(trainer, checkpoints, log, rollbacks, error)
                    loader = self._loader(trainer)
                    continue
                stop.defer()  # in the first step nothing was lost by a stop in the middle; from here on steps are ended
                slowest = max(slowest, time.monotonic() - began)
                spent = time.monotonic() - started
                self._after_step(trainer, report, log, checkpoints, spent, rollbacks)
                if self.ranks.any(stop.asked):
                    if self.ranks.is_main:
                        checkpoints.save(trainer, seconds=spent, rollbacks=rollbacks)
                    raise StoppedError(
                        str(self.folder), f"stopped at step {trainer.step}, all is saved", "go on with --resume"
                    )
            stop.defer()
            loader.close()
            return self._finish(trainer, log, checkpoints, time.monotonic() - started, rollbacks)

    def _config_text(self) -> str:
        """As it was written: a newer tusk may know more settings, and would write it otherwise."""
        stored = self.folder / "config.yaml"
        return self.ranks.broadcast(
            lambda: stored.read_text(encoding="utf-8") if stored.exists() else to_yaml(self.config)
        )

    def _stop_signals(self) -> AbstractContextManager[StopSignals]:
        stopped = StoppedError(str(self.folder), "stopped in the first step, nothing is lost", "go on with --resume")
        ended = f"{self.folder}: ended at once; --resume goes on from the last checkpoint."
        return stop_signals(lambda: stopped, ended)

    def _progress(self, trainer: Trainer, seconds: float) -> float:
        progress = trainer.step / self.config.training.steps
        minutes = self.config.training.minutes
        if minutes is None:
            return progress
        return float(self.ranks.broadcast(lambda: max(progress, seconds / 60 / minutes)))

    def _loader(self, trainer: Trainer) -> Loader:
        training = self.config.training
        return Loader(
            self.dataset,
            batch=training.batch // 2,
            seed=training.seed,
            workers=loading_workers(training.workers, self.device),
            position=trainer.step,
            rank=self.ranks.rank,
            world=self.ranks.world,
            pinned=self.device.type == "cuda",
        )

    def _after_step(
        self,
        trainer: Trainer,
        report: StepReport,
        log: RunLog | None,
        checkpoints: Checkpoints,
        spent: float,
        rollbacks: int,
    ) -> None:
        if log is None:
            return
        training = self.config.training
        self.show.step(report, training.steps, spent)
        if report.step % _LOG_EVERY == 0:
            log.step(report)
        due = report.step % training.evaluate_every == 0
        figures = self._validate(trainer, log) if due else None
        if due or report.step % training.checkpoint_every == 0:
            score = None if figures is None else self._score(trainer, figures)
            checkpoints.save(trainer, seconds=spent, rollbacks=rollbacks, score=score)
        if figures is not None:
            self._page(trainer.network, TrainingState(trainer.step, spent, False, figures))

    def _validate(self, trainer: Trainer, log: RunLog) -> ValidationFigures:
        """How the run is doing."""
        held = self.validation
        figures = validate(trainer.network, self.config, held.images, self.config.training.seed)
        task = task_figures(trainer.network, self.config, held.images, held.truths, held.class_count)
        log.validation(trainer.step, {**asdict(figures), "score": figures.score, **task})
        self.show.validation(trainer.step, figures, self.config.model.types, task)
        return figures

    def _score(self, trainer: Trainer, figures: ValidationFigures) -> float | None:
        """The run's unsupervised score, once there are types to score."""
        return figures.score if trainer.centred and trainer.progress_before >= self.config.training.warm_up else None

    def _page(self, network: Network, moment: TrainingState) -> None:
        """A page that fails is a warning, and does not end the training."""
        if self.write_page is None:
            return
        try:
            self.verdict = self.write_page(network, moment)
        except Exception as error:
            self.write_page = None  # one warning is enough
            self.show.say(
                f"The page of this run could not be written ({type(error).__name__}: {error}); the training is not "
                f"affected, and 'tusk report {self.folder}' tries again."
            )

    def _roll_back(
        self, trainer: Trainer, checkpoints: Checkpoints, log: RunLog | None, rollbacks: int, error: NotFiniteError
    ) -> None:
        """To the last checkpoint, with other random numbers and smaller steps: the same ones would fail again."""
        factor = trainer.rate_factor / 2  # of what it was now, and not when the checkpoint was written
        checkpoints.restore(trainer)
        trainer.generator.manual_seed(self.config.training.seed + 1_000_003 * rollbacks)
        trainer.rate_factor = factor
        if log is not None:
            log.roll_back(trainer.step)
        self.show.say(f"{error} Back to step {trainer.step}, learning rate halved ({rollbacks} of {_ROLLBACKS}).")

    def _finish(
        self, trainer: Trainer, log: RunLog | None, checkpoints: Checkpoints, spent: float, rollbacks: int
    ) -> Path:
        path = self.folder / "model.safetensors"
        if log is None:
            return path
        figures = self._validate(trainer, log)
        score, chosen = self._score(trainer, figures), trainer.step
        checkpoints.save(trainer, seconds=spent, rollbacks=rollbacks, score=score)
        log.close()
        if self.config.training.selection == "best":
            best = checkpoints.restore_network(trainer.network, "best")
            score, chosen = (None, chosen) if best is None else (best.score, best.step)
        provenance = {
            "command": self.command,
            "seed": self.config.training.seed,
            "minutes": round(spent / 60, 2),
            "steps": chosen,
            "score": None if score is None else round(score, 4),
            "least_gain": self._least_gain(trainer.network),
        }
        network, config, tree = trainer.network, self.config, None
        if config.training.merge_types:
            network, config, tree = self._merge_types(network)
            provenance["type_tree"] = tree
        stored = StoredModel(_in_use(network), config, provenance)
        save_model(path, stored)
        # Figures of other weights, or of the types before they were merged, do not belong to this model.
        validation = figures if chosen == trainer.step and network is trainer.network else None
        self._page(network, TrainingState(chosen, spent, True, validation, stored.least_gain, tree))
        return path

    def _merge_types(self, network: Network) -> tuple[Network, Config, Any]:
        """-> the network with its prototypes as members of fewer types, its configuration, and the tree of merges."""
        with warnings.catch_warnings():
            # Things that look the same to the bit, as copies of one picture give them, are no fault.
            warnings.filterwarnings("ignore", "Number of distinct clusters")
            merged = merge_types(network, self.config, self.validation.images, self.config.training.seed)
        if merged is None:
            self.show.say("Too few things were found to say how many types there are; they stay as they are.")
            return network, self.config, None
        types = 1 + max(merged.members)
        self.show.say(f"Types: {len(merged.members)} clusters merged to {types} by what holds across views.")
        model = self.config.model.model_copy(update={"types": types, "prototypes": merged.members})
        config = self.config.model_copy(update={"model": model})
        other = Network(model).to(network.device)
        other.load_state_dict(network.state_dict())
        return other, config, merged.tree

    def _least_gain(self, network: Network) -> float | None:
        """What `tusk detect` leaves out by itself; None where all keypoints are of one kind."""
        if self.config.model.sizes is not None:
            return None  # there `detection.min_explained` decides, which does not depend on how large a thing is
        every = max(1, len(self.validation.images) // _COUNTED)
        least = least_gain(network, self.validation.images[::every], settings_from(self.config))
        return float(f"{least:.4g}") if np.isfinite(least) else None


def no_room(config: Config, device: torch.device) -> UserError:
    """What to do where a GPU has not the memory that a step turned out to need."""
    training = config.training
    part = training.micro_batch or training.batch
    why = f"a step with {part} images at once does not fit into the memory of {device}"
    return UserError("training.batch", why, "set training.micro_batch, or training.recompute, and go on with --resume")


def loading_workers(asked: int | None, device: torch.device) -> int:
    """Processes that load images for one that trains on this device."""
    if asked is not None:
        return asked
    if device.type == "cpu":
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST_WORKERS, max(1, cores // Place.here().local_world - 1))


def _in_use(network: Network) -> Network:
    return network.eval().requires_grad_(False)
