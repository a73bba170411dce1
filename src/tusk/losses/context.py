"""What the losses of one training step have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from tusk.config import Config, value_at
from tusk.geometry.foreground import flat_foreground
from tusk.geometry.warp import Warp
from tusk.losses.foreground import background_residual, on_background
from tusk.losses.quantisation import vector_quantisation
from tusk.losses.two_views import TwoViews, two_views, with_own_surroundings
from tusk.losses.uniform_region import in_uniform_region
from tusk.model.decoder import Decoded
from tusk.model.network import Encoding, Network


class Processes(Protocol):
    """The processes that share a batch."""

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all processes of a tensor of one shape; gradients flow back to each."""

    def all_gather_with_grad(self, value: Tensor) -> Tensor:
        """(N, ...) of each process -> (world * N, ...), the same on all; gradients flow back to each."""


class Memory(Protocol):
    """The latest descriptors of earlier steps, perhaps with the cluster of each."""

    groups: Tensor | None  # (N,) the number of each one's cluster, where known

    def __len__(self) -> int: ...

    def latest(self) -> Tensor:
        """(N, C), of unit length."""

    def pseudo_labels(self, descriptors: Tensor, groups: int) -> Tensor:
        """(N, C) -> (N, groups): how the nearest descriptors in memory are shared out among the clusters."""


@dataclass(frozen=True)
class StepContext:
    """All that a loss may use. What several losses need is computed once, when the first of them asks for it."""

    config: Config
    network: Network
    images: Tensor  # (2n, 3, H, W) in [0, 1]: n first views, then their second views = warp(first)
    warp: Warp
    progress: float  # share of the training done
    encoding: Encoding  # of all 2n images
    ranks: Processes
    memory: Memory

    @property
    def pairs(self) -> int:
        """How many pairs of views there are (n)."""
        return len(self.images) // 2

    @cached_property
    def image_xy(self) -> Tensor:
        """(2n, K, 2): the keypoints in image pixels, without gradients."""
        return self.network.to_image(self.encoding.keypoints.xy.detach())

    @property
    def carried(self) -> Tensor:
        """(2n, K, C): the descriptors that the decoder gets."""
        return self.encoding.descriptors if self.quantised is None else self.quantised[0]

    @cached_property
    def quantised(self) -> tuple[Tensor, Tensor] | None:
        """Descriptors (2n, K, C) replaced by their nearest prototypes, and the loss of that; None where that is off."""
        weight = value_at(self.config.losses.quantisation.weight, self.progress)
        if weight == 0 or self.progress < self.config.training.warm_up:
            return None
        return vector_quantisation(self.encoding.descriptors, self.network.prototypes.unit())

    @property
    def shown(self) -> slice:
        """The images that are reconstructed."""
        return slice(self.pairs if self.config.losses.reconstruction.views == "first" else 2 * self.pairs)

    @cached_property
    def decoded(self) -> Decoded:
        """The reconstruction of the images that are `shown`."""
        training, encoding, shown = self.config.training, self.encoding, self.shown
        return self.network.decode(
            encoding.keypoints[shown],
            self.carried[shown],
            (self.images.shape[-2], self.images.shape[-1]),
            None if training.variance is None else value_at(training.variance, self.progress),
            encoding.thumbnail[shown],
            layers=False,
        )

    @cached_property
    def residual(self) -> Tensor | None:
        """(2n, 1, h, w): how little the background alone explains; None where the network has no background."""
        with torch.no_grad():
            background = self.network.background(self.images)
            if background is None:
                return None
            model = self.network.config
            measure = flat_foreground if model.background == "flat" else background_residual
            return measure(self.images, background, model.stride)

    @cached_property
    def uniform(self) -> Tensor:
        """(2n, K) bool: which keypoints lie in a region of one colour, half a window wide."""
        return in_uniform_region(self.images, self.image_xy, self.network.config.window // 4 * 2 + 1)

    @cached_property
    def is_valid(self) -> Tensor:
        """(2n, K) bool: the keypoints that are of a type.

        Not so are those that were not found, lie on the background or (where `losses.uniform_region` is in use) in a
        uniform region, and those of second views whose surroundings were replaced: their objects are cut through.
        """
        own = with_own_surroundings(self.network, self.encoding, self.warp, self.images.shape)
        valid = self.encoding.keypoints.found & torch.cat([torch.ones_like(own), own])
        if self.residual is not None:
            valid = valid & ~on_background(self.residual, self.encoding.keypoints.xy)
        if value_at(self.config.losses.uniform_region.weight, self.progress) > 0:
            valid = valid & ~self.uniform
        return valid

    @cached_property
    def valid_descriptors(self) -> Tensor:
        """(N, C): the descriptors of the valid keypoints."""
        return self.encoding.descriptors[self.is_valid]

    @cached_property
    def valid_share(self) -> Tensor:
        """The valid keypoints of this process over the mean of all: it makes means over processes those over keypoints.

        Every process has to ask for it, also one without a valid keypoint.
        """
        count = self.is_valid.sum().to(self.images.dtype)
        return count / self.ranks.mean(count).clamp_min(1e-8)

    @cached_property
    def two_views(self) -> TwoViews:
        """The second views' valid keypoints, and the same places in the first views."""
        valid = self.is_valid[self.pairs :]
        return two_views(self.network, self.encoding, self.warp, self.images.shape, valid)

    def nearest_in_memory(self, descriptors: Tensor) -> Tensor:
        """(N, C) -> (N, C): the most similar descriptors of other images; this step's are not in the memory yet."""
        others = self.memory.latest()
        return others[(descriptors.detach() @ others.T).argmax(-1)]
