"""The training steps, to be read from top to bottom. `training/run.py` feeds them, saves them and shows them.

trainer = Trainer(config)
report = trainer.train_step(images, progress)     # images: uint8 (n, 3, H, W), the first views' originals
"""

from __future__ import annotations

import math
import os
import shutil
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tusk.config import Config, TrainingConfig
from tusk.errors import UsageError, UserError
from tusk.geometry.warp import Warp, sample_warp
from tusk.model.decoder import Decoder
from tusk.model.network import seeded_network
from tusk.model.unet import UNet
from tusk.training.distributed import Ranks
from tusk.training.memory import DescriptorMemory
from tusk.training.objective import Objective, StepKeypoints
from tusk.training.prototypes import PrototypeTraining


class NotFiniteError(UserError):
    """A loss or gradient that is not a number any more; nothing has been changed by the step that found it."""


@dataclass(frozen=True)
class StepReport:
    """What one step was like."""

    step: int  # steps done
    progress: float  # share of the training done, 0 to 1
    losses: dict[str, float]  # each weighted loss by name, 0 while its weight is; and the prototypes' own
    images_per_second: float


class Trainer:
    """A network in training: everything that a step reads or changes, and nothing else."""

    def __init__(self, config: Config, ranks: Ranks | None = None, device: torch.device | str = "cpu") -> None:
        training = config.training
        self.config = config
        self.ranks = ranks or Ranks()
        self.device = torch.device(device)
        self.network = seeded_network(config.model, training.seed).to(device).train()
        # All random numbers of training come from here. Every process draws the same ones, for the whole batch.
        self.generator = torch.Generator().manual_seed(training.seed)
        # With an evenness below 1, types may be of very uneven frequency.
        self.memory = DescriptorMemory(training.memory, even=config.losses.mutual_information.evenness >= 1)
        self.step = 0
        self.progress_before = -1.0
        self.rate_factor = 1.0  # lowered when a run had to be rolled back

        self.precision = precision_of(training.precision, self.device)
        for part in self.network.modules():
            if isinstance(part, UNet):
                part.precision = None if self.precision is torch.float32 else self.precision
                part.recompute = training.recompute
        # Gradients of float16 vanish where they are small: they are computed of a multiple of the loss.
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision is torch.float16)

        self.network.prototypes.requires_grad_(False)  # not DistributedDataParallel's business
        objective = Objective(self.network, config, self.ranks, self.memory).to(device)
        self.losses = objective.losses
        self.objective: nn.Module = objective
        if training.compile:
            if self.device.type == "cpu" and shutil.which(os.environ.get("CXX", "g++")) is None:
                raise UsageError("training.compile", "no C++ compiler was found", "install g++, or leave it out")
            # In place, so that the names of the weights stay as they are.
            self.network.encoder.compile()
            decoder = self.network.decoder
            (decoder.unet if isinstance(decoder, Decoder) else decoder).compile()
        if self.ranks.world > 1:
            self.objective = DistributedDataParallel(objective)
        self.body = [*self.network.encoder.parameters(), *self.network.decoder.parameters()]
        # Fused: the many small operations of each weight take longer than their arithmetic.
        self.network_optimiser = torch.optim.Adam(self.body, training.learning_rate, fused=True)
        self.prototype_optimiser = torch.optim.Adam(
            self.network.prototypes.parameters(), training.prototype_learning_rate, betas=(0.5, 0.999), fused=True
        )
        self.prototypes = PrototypeTraining(
            config,
            self.network.prototypes,
            self.prototype_optimiser,
            self.memory,
            self.ranks,
            self.generator,
            self._prototypes_replaced,
        )

    @property
    def centred(self) -> bool:
        """Whether the prototypes have their start: at random, or from clusters once the warm-up is over."""
        return self.prototypes.started

    def train_step(self, images: Tensor, progress: float) -> StepReport:
        """One step on encoder and decoder with fixed prototypes, then some on the prototypes alone.

        images: uint8 (n, 3, H, W), this process's share of the pairs of the batch.
        """
        training = self.config.training
        began = time.perf_counter()
        for group in self.network_optimiser.param_groups:
            group["lr"] = learning_rate(training, progress) * self.rate_factor

        # As bytes to the device, and numbers there: a quarter of the way between memories.
        first = images.to(self.device, non_blocking=True).to(self.body[0].dtype).div_(255)  # (n, 3, H, W)
        pairs = len(first) * self.ranks.world
        own = self.ranks.part(pairs)
        if self.step == 0 and training.start_at_mean:
            self.network.decoder.start_at(self.ranks.mean(first.mean((0, 2, 3))))
        first = sample_warp(training.first_warp, pairs, self.generator, self.device)[own].images(first)
        warp = sample_warp(training.second_warp, pairs, self.generator, self.device)[own]
        second = warp.images(first)
        losses, described = self._network_step(first, second, warp, progress)

        is_valid = self.ranks.gather(described.is_valid)
        descriptors = self.ranks.gather(described.descriptors)[is_valid]  # fixed from here on
        self.memory.add(
            descriptors, None if described.patches is None else self.ranks.gather(described.patches)[is_valid]
        )
        if progress >= training.warm_up and len(descriptors):  # none, where all keypoints lie on the background
            value = self.prototypes.train_step(descriptors, self.step, self.progress_before, progress)
            if value is not None:
                losses["prototypes"] = value
        self.step += 1
        self.progress_before = progress
        rate = 2 * pairs / (time.perf_counter() - began)
        return StepReport(self.step, progress, losses, rate)

    def _network_step(
        self, first: Tensor, second: Tensor, warp: Warp, progress: float
    ) -> tuple[dict[str, float], StepKeypoints]:
        """-> each weighted loss by name, and all keypoints of this process: descriptors (2n*K, C) and so on."""
        training = self.config.training
        pairs = len(first)
        part = pairs if training.micro_batch is None else min(pairs, training.micro_batch // 2)
        single_stage = not training.alternate and progress >= training.warm_up
        self.network.prototypes.requires_grad_(single_stage)
        self.network_optimiser.zero_grad(set_to_none=True)
        self.prototype_optimiser.zero_grad(set_to_none=True)

        losses = dict.fromkeys(self.losses, 0.0)
        described: list[StepKeypoints] = []
        for start in range(0, pairs, part):
            chosen = slice(start, min(start + part, pairs))
            views = torch.cat([first[chosen], second[chosen]])  # (2p, 3, H, W)
            with self._gradients_stay_here(unless=chosen.stop == pairs):
                try:
                    terms, found = self.objective(views, warp[chosen], progress)
                except Exception as error:
                    if (fault := _compiler_fault(error)) is None:
                        raise
                    raise fault from error
                share = len(views) / (2 * pairs)
                loss = torch.stack(list(terms.values())).sum() * share
                if single_stage and bool(found.is_valid.any()):
                    loss = loss + share * self.prototypes.loss(found.descriptors[found.is_valid])
                # In one copy: each waits until the device has come so far.
                numbers = torch.stack([term.detach() for term in terms.values()]).tolist()
                values = dict(zip(terms, numbers, strict=True))
                # Before the gradient: torch's own code crashes on locations that are not numbers.
                self._refuse(next((name for name, value in values.items() if not math.isfinite(value)), None))
                self.scaler.scale(loss).backward()
            for name, value in values.items():
                losses[name] += share * value
            described.append(found)
        means = self.ranks.mean(torch.tensor(list(losses.values()), dtype=torch.float64, device="cpu"))
        losses = dict(zip(losses, means.tolist(), strict=True))
        self._step(single_stage=single_stage)
        return losses, StepKeypoints.joined(described)

    def _step(self, *, single_stage: bool) -> None:
        """The optimisers' steps on the gradients that are there."""
        weight = self.network.prototypes.weight
        optimisers = [self.network_optimiser]
        if single_stage and weight.grad is not None:
            weight.grad.copy_(self.ranks.mean(weight.grad))
            optimisers.append(self.prototype_optimiser)
        for optimiser in optimisers:
            self.scaler.unscale_(optimiser)
        norm = nn.utils.clip_grad_norm_(self.body, self.config.training.clip)
        # With a scaler, a gradient may be too large for float16: then this step is left out, and the scale halved.
        tried = self.scaler.is_enabled() and self.scaler.get_scale() > 1
        self._refuse(None if tried or bool(torch.isfinite(norm)) else "gradient")
        for optimiser in optimisers:
            self.scaler.step(optimiser)
        self.scaler.update()

    def _prototypes_replaced(self) -> None:
        for loss in self.losses.values():
            loss.prototypes_replaced()

    def _gradients_stay_here(self, *, unless: bool) -> AbstractContextManager[object]:
        """Only the last part of a batch has its gradients added up over the processes."""
        if unless or not isinstance(self.objective, DistributedDataParallel):
            return nullcontext()
        return self.objective.no_sync()

    def _refuse(self, fault: str | None) -> None:
        """End a step, on all processes alike, where one found something that is not a number; no weight is changed."""
        if self.ranks.any(fault is not None):
            raise NotFiniteError(
                f"training: {fault or 'another process'}",
                f"it is not a finite number at step {self.step}",
                "lower training.learning_rate, or the weight of that loss",
            )


def _compiler_fault(error: Exception) -> UsageError | None:
    """What the compiler could not do, as one sentence; None for any other error."""
    if not type(error).__module__.startswith(("torch._inductor", "torch._dynamo")):
        return None
    why = f"torch could not compile the network ({str(error).splitlines()[0][:150]})"
    return UsageError("training.compile", why, "leave it out")


def precision_of(asked: str, device: torch.device) -> torch.dtype:
    """The type that the U-Nets compute in on this device."""
    if asked != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[asked]
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float32


def learning_rate(training: TrainingConfig, progress: float) -> float:
    """Constant, or up along a half cosine first and down to almost nothing along another."""
    peak = training.learning_rate
    if training.learning_rate_shape == "constant":
        return peak
    low_start, low_end, rise = peak / 25, peak / 1e4, training.learning_rate_rise
    if progress < rise:
        return low_start + (peak - low_start) * (1 - math.cos(math.pi * progress / rise)) / 2
    return low_end + (peak - low_end) * (1 + math.cos(math.pi * (progress - rise) / (1 - rise))) / 2
