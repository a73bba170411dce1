"""All losses of one step: a loop over those that the configuration uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tusk.config import Config, value_at
from tusk.geometry.warp import Warp
from tusk.losses import Loss, StepContext, make_losses
from tusk.model.network import Network
from tusk.training.distributed import Ranks
from tusk.training.memory import DescriptorMemory
from tusk.training.patches import crop_patches

_PATCH = 1.5  # windows: a patch shows a little more than the object


@dataclass(frozen=True)
class StepKeypoints:
    """The keypoints of a step, for the prototypes."""

    descriptors: Tensor  # (2n, K, C)
    is_valid: Tensor  # (2n, K) bool: False for a keypoint that is of no type, as one that lies on the background
    patches: Tensor | None  # uint8 (2n, K, 3, 16, 16), if asked for

    @staticmethod
    def joined(parts: Sequence[StepKeypoints]) -> StepKeypoints:
        """All keypoints of these in one row: descriptors (N, C), is_valid (N,), patches (N, 3, 16, 16); detached."""
        patches = [part.patches.flatten(0, 1) for part in parts if part.patches is not None]
        return StepKeypoints(
            torch.cat([part.descriptors.detach().flatten(0, 1) for part in parts]),
            torch.cat([part.is_valid.flatten() for part in parts]),
            torch.cat(patches) if patches else None,
        )


class Objective(nn.Module):
    """The network's loss, as a module: DistributedDataParallel wraps it and adds up the processes' gradients."""

    def __init__(self, network: Network, config: Config, ranks: Ranks, memory: DescriptorMemory) -> None:
        super().__init__()
        self.network = network
        self.config = config
        self.ranks = ranks
        self.memory = memory
        self.losses: dict[str, Loss[Any]] = make_losses(config)
        self._modules_of_losses = nn.ModuleList(self.losses.values())  # so that they move with this module
        network.descriptor_space.over_ranks = ranks.mean

    def forward(self, images: Tensor, warp: Warp, progress: float) -> tuple[dict[str, Tensor], StepKeypoints]:
        """images (2n, 3, H, W): n first views, then their second views = warp(first).

        -> the weighted losses by name, one number each, of which those whose weight is 0 now are left out; and the
        keypoints.
        """
        training = self.config.training
        window = None if training.window is None else value_at(training.window, progress)
        encoding = self.network.encode(images, window=window)
        step = StepContext(self.config, self.network, images, warp, progress, encoding, self.ranks, self.memory)
        terms = {name: loss(step) for name, loss in self.losses.items() if loss.is_active(progress)}
        patches = None
        if training.reassign_by_appearance:
            patches = crop_patches(images, step.image_xy, _PATCH * self.network.config.window)
        return terms, StepKeypoints(encoding.descriptors, step.is_valid, patches)
