"""A few seconds of everything: learn, look with a model that comes with tusk, write and read a file."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import tusk
from tusk.config import Config
from tusk.data.datasets.digits import Digits
from tusk.errors import DataError, UserError
from tusk.io import atomic_write
from tusk.training.trainer import Trainer
from tusk.weights import shipped_models

_STEPS, _SECONDS = 30, 3.0
_IMAGES = 32


@dataclass(frozen=True)
class Outcome:
    """How one test went."""

    name: str
    well: bool
    words: str  # what was seen, or what is wrong and what to do
    images_per_second: float | None = None


def run_self_tests() -> list[Outcome]:
    """All of them, whatever happens to one."""
    tests: dict[str, Callable[[], Outcome]] = {"learning": _learning, "looking": _looking, "files": _files}
    outcomes = []
    for name, test in tests.items():
        try:
            outcomes.append(test())
        except UserError as error:
            outcomes.append(Outcome(name, False, str(error)))
        except Exception as error:  # whatever it is, the user is to read one sentence about it
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
            outcomes.append(Outcome(name, False, f"The self test of {name} failed ({why}): install tusk again."))
    return outcomes


def _learning() -> Outcome:
    """A tiny network on digits that are made here: the loss must stay a number."""
    config = Config.model_validate(
        {
            "data": {"dataset": "digits", "size": 80},
            "model": {"keypoints": 9, "types": 10, "channels": 8, "width": 8, "levels": 3, "stride": 2, "window": 21},
            "training": {"batch": 16, "start_at_mean": True, "learning_rate": 0.003},
        }
    )
    trainer, digits = Trainer(config), Digits(split="train", count=1000)
    losses: list[float] = []
    began = time.perf_counter()
    while len(losses) < _STEPS and time.perf_counter() - began < _SECONDS:
        pixels = digits.images(np.arange(8) + 8 * len(losses))  # (8, H, W, 3)
        report = trainer.train_step(torch.from_numpy(pixels).permute(0, 3, 1, 2), len(losses) / _STEPS)
        losses.append(report.losses["reconstruction"])
    rate = 16 * len(losses) / (time.perf_counter() - began)
    if not all(math.isfinite(loss) for loss in losses):
        raise DataError("learning", "the loss is not a number", "install torch again")
    told = f"{len(losses)} steps of a tiny network, {rate:.0f} images/s, error {losses[0]:.3f} to {losses[-1]:.3f}"
    return Outcome("learning", True, told, rate)


def _looking() -> Outcome:
    """Every model that comes with tusk opens (its checksum is looked at) and finds and paints what it should."""
    seen, rate = [], 0.0
    for name in shipped_models():
        model = tusk.load(name)
        side = model.config.data.size
        digits = Digits(split="test", count=_IMAGES).images(np.arange(_IMAGES))
        images = torch.from_numpy(digits).permute(0, 3, 1, 2).float() / 255
        if images.shape[-1] != side:
            images = torch.nn.functional.interpolate(images, size=(side, side))
        began = time.perf_counter()
        with torch.no_grad():
            output = model.network(images, missing="empty")
        rate = len(images) / (time.perf_counter() - began)
        if not bool(torch.isfinite(output.reconstruction).all() and torch.isfinite(output.xy).all()):
            raise DataError(f"model '{name}'", "it gives values that are not numbers", "install tusk again")
        seen.append(f"{name} {rate:.0f} images/s, {int(output.found.sum())} keypoints in {_IMAGES} images")
    return Outcome("looking", True, "; ".join(seen) or "no model to look with", rate or None)


def _files() -> Outcome:
    """What is written is read again."""
    content = bytes(range(256)) * 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tusk-doctor"
        atomic_write(path, content)
        if path.read_bytes() != content:
            raise DataError(folder, "a file is not read as it was written", "set TMPDIR to a folder on another disk")
    return Outcome("files", True, f"{len(content) // 1024} kB written and read in {Path(folder).parent}")
