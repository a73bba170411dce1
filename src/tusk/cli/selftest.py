"""A few seconds of everything: train, detect with the models that come with tusk, write and read a file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tusk
from tusk.config import Config
from tusk.data.dataset import Dataset, Float32Array
from tusk.data.datasets.clevr_made import ClevrMade
from tusk.data.datasets.digits import Digits
from tusk.data.datasets.tetrominoes import Tetrominoes
from tusk.device import choose_device
from tusk.errors import DataError, UserError
from tusk.io import atomic_write
from tusk.training.trainer import Trainer
from tusk.weights import shipped_models

_STEPS = 40
_LEAST_FALL = 0.9  # the last errors must be below this share of the first
_IMAGES = 8
_LEAST_FOUND = 0.8  # of the objects in the test images; the models find nearly all

# What each model that comes with tusk was trained to find, made here with its truth.
_KNOWN: dict[str, Callable[[], Dataset]] = {
    "mnist-hard": lambda: Digits(split="test", count=_IMAGES),
    "tetrominoes": lambda: Tetrominoes(split="test", count=_IMAGES),
    "clevr6": lambda: ClevrMade(split="test", count=_IMAGES, size=96),
}


@dataclass(frozen=True)
class Outcome:
    """How one test went."""

    name: str
    well: bool
    words: str  # what was measured, or what is wrong and what to do
    images_per_second: float | None = None


def run_self_tests(device: str = "auto") -> list[Outcome]:
    """All of them, whatever happens to one, on this device."""
    place = choose_device(device)
    tests: dict[str, Callable[[], Outcome]] = {
        "training": lambda: _training(place),
        "detection": lambda: _detection(place),
        "files": _files,
    }
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


def _training(device: torch.device) -> Outcome:
    """A tiny network on digits that are made here: its reconstruction error must fall."""
    config = Config.model_validate(
        {
            "data": {"dataset": "digits", "size": 80},
            "model": {"keypoints": 9, "types": 10, "channels": 8, "width": 8, "levels": 3, "stride": 2, "window": 21},
            "training": {"batch": 16, "start_at_mean": True, "learning_rate": 0.003},
        }
    )
    trainer, digits = Trainer(config, device=device), Digits(split="train", count=8 * _STEPS)
    errors: list[float] = []
    began = time.perf_counter()
    for step in range(_STEPS):
        pixels = digits.images(np.arange(8) + 8 * step)  # (8, H, W, 3)
        report = trainer.train_step(torch.from_numpy(pixels).permute(0, 3, 1, 2), step / _STEPS)
        errors.append(report.losses["reconstruction"])
    rate = 16 * len(errors) / (time.perf_counter() - began)
    first, last = float(np.mean(errors[:4])), float(np.mean(errors[-4:]))
    measured = f"{_STEPS} steps of a tiny network on {device}, {rate:.0f} images/s, error {first:.3f} to {last:.3f}"
    if not last < _LEAST_FALL * first:  # NaN neither
        raise DataError("training", f"the reconstruction error does not fall ({measured})", "install torch again")
    return Outcome("training", True, measured, rate)


def _detection(device: torch.device) -> Outcome:
    """Every model that comes with tusk opens (its checksum is compared) and finds objects whose places are known."""
    measured, rate = [], None
    for name in shipped_models():
        model = tusk.load(name, str(device))
        if name not in _KNOWN:
            measured.append(f"{name} opens")
            continue
        dataset = _KNOWN[name]()
        images = [dataset.image(index) for index in range(_IMAGES)]
        began = time.perf_counter()
        # All keypoints: which of them count is the model's own choice, not this machine's.
        detections: Any = model.detect(images)
        rate = _IMAGES / (time.perf_counter() - began)
        objects = [_hits(dataset, index, found.xy) for index, found in enumerate(detections)]
        found, total = sum(hits for hits, _ in objects), sum(count for _, count in objects)
        words = f"{name} found {found} of {total} objects, {rate:.0f} images/s"
        if found < _LEAST_FOUND * total:
            raise DataError(f"model '{name}'", f"{words}, which are too few", "install tusk and torch again")
        measured.append(words)
    return Outcome("detection", True, "; ".join(measured) or "no model to detect with", rate)


def _hits(dataset: Dataset, index: int, xy: Float32Array) -> tuple[int, int]:
    """How many objects of an image have a point within their box, and how many there are."""
    truth = dataset.truth(index)
    assert truth is not None and truth.boxes is not None
    low, high = truth.boxes[:, None, :2], truth.boxes[:, None, 2:]  # (N, 1, 2)
    inside = np.all((xy >= low) & (xy <= high), axis=2)  # (N, K)
    return int(np.any(inside, axis=1).sum()), len(truth.boxes)


def _files() -> Outcome:
    """A file is replaced as a whole, read as it was written, and nothing else is left behind."""
    content = bytes(range(256)) * 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tusk-doctor"
        atomic_write(path, b"before")
        atomic_write(path, content)
        if path.read_bytes() != content or list(Path(folder).iterdir()) != [path]:
            raise DataError(folder, "a file is not read as it was written", "set TMPDIR to a folder on another disk")
    return Outcome("files", True, f"{len(content) // 1024} kB written and read in {Path(folder).parent}")
