"""What speaks for or against the points of a model, measured without a label: what the verdict is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tusk.config import Config
from tusk.evaluation.repeatability import RepeatabilityFigures, repeatability
from tusk.evaluation.things import ThingFigures, find_foreground, thing_figures
from tusk.evaluation.usefulness import idle_points, types_as_places
from tusk.model.network import Network
from tusk.report.curves import Chart
from tusk.report.predictions import Predictions

_WARPED = 60  # images whose points are looked for again
_MOSTLY = 0.5  # of the pictures have a clear foreground: fewer say nothing of the others
_FEW_POINTS = 10  # fewer are no share of anything


@dataclass(frozen=True)
class Evidence:
    """Figures that need no label."""

    idle: Tensor  # (N, K) bool: points whose removal changes little
    places: float  # how well types foretell where the next point lies, from 0 to 1
    at_limit: float  # share of the pictures in which every keypoint is a detection
    things: ThingFigures | None = None  # None where the pictures have no clear foreground
    repeated: RepeatabilityFigures | None = None  # None where there were too few points
    learnt: TrainingLength | None = None  # None where it is not known how the model was trained

    def idle_share(self, found: Tensor) -> float:
        return float(self.idle.sum() / found.sum().clamp_min(1))


@dataclass(frozen=True)
class TrainingLength:
    """How much a training has seen."""

    step: int
    images: int  # drawn from the dataset, with repeats
    planned: int  # steps
    still_falling: float  # share by which the reconstruction loss fell between the last two fifths of the training


def gather_evidence(network: Network, predictions: Predictions, length: TrainingLength | None = None) -> Evidence:
    """It draws no random numbers but its own, and leaves the network in the mode that it was in."""
    sample, found = predictions.sample, predictions.found
    xy = predictions.xy.numpy()
    foreground = find_foreground(sample.images)
    things = thing_figures(foreground, xy, found.numpy())
    known = things.pictures > _MOSTLY * len(sample) and int(found.sum()) >= _FEW_POINTS
    repeated = repeatability(
        network, sample.images[:_WARPED], predictions.xy[:_WARPED], found[:_WARPED], predictions.settings
    )
    return Evidence(
        idle=idle_points(predictions.gain, found, predictions.error, sample.images),
        places=types_as_places(xy, found.numpy(), predictions.label.numpy()),
        at_limit=float(found.all(1).float().mean()),
        things=things if known else None,
        repeated=repeated if repeated.points >= _FEW_POINTS else None,
        learnt=length,
    )


def training_length(step: int | None, config: Config, charts: Sequence[Chart]) -> TrainingLength | None:
    """From the step of the weights and the run's logs; None where the step is not known."""
    if step is None:
        return None
    training = config.training
    losses = [chart.curves[0].y for chart in charts if chart.title == "Loss: reconstruction"]
    falling = _falling(torch.tensor(losses[0], dtype=torch.float64)) if losses else 0.0
    return TrainingLength(step, step * training.batch // 2, training.steps, falling)


def _falling(loss: Tensor) -> float:
    fifth = len(loss) // 5
    if fifth < 1:
        return 0.0
    before, last = float(loss[-2 * fifth : -fifth].mean()), float(loss[-fifth:].mean())
    return 1 - last / before if before > 0 else 0.0
