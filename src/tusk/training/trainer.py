"""The training loop, to be read from top to bottom.

trainer = Trainer(config, batches)          # batches: uint8 (n, 3, H, W), without end
for report in trainer.run():                # one report a step
    print(report.step, report.losses)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from tusk.config import Config, TrainingConfig
from tusk.errors import UserError
from tusk.geometry.warp import Warp, sample_warp
from tusk.losses.reconstruction import load_perceptual_loss, mse_loss
from tusk.model.network import seeded_network
from tusk.training.memory import DescriptorMemory, kmeans_centres
from tusk.training.objective import Reconstruction, Terms, network_terms, prototype_loss


@dataclass(frozen=True)
class StepReport:
    """What one step was like."""

    step: int  # steps done
    progress: float  # share of the training done, 0 to 1
    losses: dict[str, float]  # each weighted term of the network's loss, and the prototypes' loss
    images_per_second: float


class Trainer:
    """A network in training."""

    def __init__(self, config: Config, batches: Iterator[Tensor]) -> None:
        """batches gives uint8 tensors (batch/2, 3, H, W): the images from which both views are made."""
        self.config = config
        self.batches = batches
        self.network = seeded_network(config.model, config.training.seed).train()
        self.generator = torch.Generator().manual_seed(config.training.seed)
        self.memory = DescriptorMemory(config.training.memory)
        self.step = 0
        self.reconstruction_loss: Reconstruction = mse_loss
        if config.losses.reconstruction.kind == "perceptual":
            self.reconstruction_loss = load_perceptual_loss(config.losses.reconstruction.vgg16)
        rate = config.training.learning_rate
        body = [*self.network.encoder.parameters(), *self.network.decoder.parameters()]
        self.network_optimiser = torch.optim.Adam(body, rate)
        self.prototype_optimiser = torch.optim.Adam(
            self.network.prototypes.parameters(), config.training.prototype_learning_rate, betas=(0.5, 0.999)
        )
        self._progress_before = -1.0
        self._centred = config.training.prototype_start == "random"

    def run(self, minutes: float | None = None) -> Iterator[StepReport]:
        """Train to the end; with `minutes`, schedules are followed by the clock where that is ahead of the steps."""
        started = time.monotonic()
        while True:
            progress = self.step / self.config.training.steps
            if minutes is not None:
                progress = max(progress, (time.monotonic() - started) / (60 * minutes))
            if progress >= 1:
                return
            yield self.train_step(progress)

    def train_step(self, progress: float) -> StepReport:
        """One step on encoder and decoder with fixed prototypes, then some on the prototypes alone."""
        training = self.config.training
        began = time.perf_counter()
        for group in self.network_optimiser.param_groups:
            group["lr"] = learning_rate(training, progress)

        first = next(self.batches).float().div_(255)  # (n, 3, H, W)
        first = sample_warp(training.first_warp, len(first), self.generator).images(first)
        warp = sample_warp(training.second_warp, len(first), self.generator)
        second = warp.images(first)
        losses, descriptors = self._network_step(first, second, warp, progress)  # descriptors (2n*K, C), fixed
        self.memory.add(descriptors)
        if progress >= training.warm_up:
            self._maybe_recentre(progress)
            if training.alternate:
                losses["prototypes"] = self._prototype_steps(descriptors)
        self.step += 1
        self._progress_before = progress
        rate = 2 * len(first) / (time.perf_counter() - began)
        return StepReport(self.step, progress, losses, rate)

    def _network_step(
        self, first: Tensor, second: Tensor, warp: Warp, progress: float
    ) -> tuple[dict[str, float], Tensor]:
        training = self.config.training
        pairs = len(first)
        part = pairs if training.micro_batch is None else min(pairs, training.micro_batch // 2)
        self.network_optimiser.zero_grad(set_to_none=True)
        self.prototype_optimiser.zero_grad(set_to_none=True)
        single_stage = not training.alternate and progress >= training.warm_up
        self.network.prototypes.requires_grad_(single_stage)

        losses = {field.name: 0.0 for field in fields(Terms)}
        described: list[Tensor] = []
        for start in range(0, pairs, part):
            chosen = slice(start, min(start + part, pairs))
            images = torch.cat([first[chosen], second[chosen]])  # (2p, 3, H, W)
            terms, descriptors = network_terms(
                self.network, self.config, images, warp[chosen], progress, self.reconstruction_loss
            )
            share = len(images) / (2 * pairs)
            loss = terms.total() * share
            if single_stage:
                flat = descriptors.flatten(0, 1)
                loss = loss + share * prototype_loss(self.network, self.config.losses, flat, self.generator)
            loss.backward()
            for name in losses:
                losses[name] += share * float(getattr(terms, name).detach())
            described.append(descriptors.detach().flatten(0, 1))
        self._check_finite(losses)
        body = self.network_optimiser.param_groups[0]["params"]
        norm = nn.utils.clip_grad_norm_(body, training.clip)
        if not bool(torch.isfinite(norm)):
            raise UserError("training", f"the gradient of step {self.step} is not finite", "lower the learning rate")
        self.network_optimiser.step()
        if single_stage:
            self.prototype_optimiser.step()
        return losses, torch.cat(described)

    def _prototype_steps(self, descriptors: Tensor) -> float:
        """The descriptors do not change in these steps: they were encoded once, with the network's own step."""
        self.network.prototypes.requires_grad_(True)
        if self.config.training.memory and len(descriptors) < 16 * self.config.model.types:
            descriptors = self.memory.latest(16 * self.config.model.types)
        value = 0.0
        for _ in range(self.config.training.prototype_steps):
            loss = prototype_loss(self.network, self.config.losses, descriptors, self.generator)
            self.prototype_optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self.prototype_optimiser.step()
            value = float(loss.detach())
        return value

    def _maybe_recentre(self, progress: float) -> None:
        """Set the prototypes by k-means at the end of the warm-up and at each restart that is passed."""
        training = self.config.training
        passed = any(self._progress_before < place <= progress for place in training.prototype_restarts)
        if self._centred and not passed:
            return
        self._centred = True
        centres = kmeans_centres(self.memory.latest(), self.config.model.types, training.seed)
        with torch.no_grad():
            self.network.prototypes.weight.copy_(centres)
        self.prototype_optimiser.state.clear()  # its averages belong to where the prototypes were

    def _check_finite(self, losses: dict[str, float]) -> None:
        for name, value in losses.items():
            if not math.isfinite(value):
                raise UserError(
                    f"training: {name}", f"it is {value} at step {self.step}", "lower the learning rate or its weight"
                )


def learning_rate(training: TrainingConfig, progress: float) -> float:
    """Constant, or up along a half cosine in the first 30% and down to almost nothing along another."""
    peak = training.learning_rate
    if training.learning_rate_shape == "constant":
        return peak
    low_start, low_end, rise = peak / 25, peak / 1e4, 0.3
    if progress < rise:
        return low_start + (peak - low_start) * (1 - math.cos(math.pi * progress / rise)) / 2
    return low_end + (peak - low_end) * (1 + math.cos(math.pi * (progress - rise) / (1 - rise))) / 2
