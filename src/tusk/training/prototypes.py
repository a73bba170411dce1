"""How the prototypes are trained: from where they start, what they follow, and when they start again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tusk.config import Config, value_at
from tusk.losses.prototypes import prototype_loss
from tusk.model.prototypes import Prototypes
from tusk.training.clustering import Clusters, kmeans_clusters, restart_dead_prototypes, spectral_clusters
from tusk.training.distributed import Ranks
from tusk.training.memory import DescriptorMemory

_SETTLED = 0.75  # share of the training after which types are left as they are


class PrototypeTraining:
    """Prototypes in training, by descriptors that do not change meanwhile."""

    def __init__(
        self,
        config: Config,
        prototypes: Prototypes,
        optimiser: torch.optim.Optimizer,
        memory: DescriptorMemory,
        ranks: Ranks,
        generator: torch.Generator,
        replaced: Callable[[], None],
    ) -> None:
        self.config = config
        self.prototypes = prototypes
        self.optimiser = optimiser
        self.memory = memory
        self.ranks = ranks
        self.generator = generator
        self.replaced = replaced  # called when prototypes belong to other types than before
        self.started = config.training.prototype_start == "random"

    def train_step(self, descriptors: Tensor, step: int, before: float, progress: float) -> float | None:
        """After a step on the network: descriptors (N, C) of its valid keypoints, already in memory too.

        before, progress: shares of the training done at the last step and now. -> the prototypes' own loss, where it
        was lowered.
        """
        training = self.config.training
        if not self.started or any(before < restart <= progress for restart in training.prototype_restarts):
            self._start_from_clusters()
        if training.restart_dead_every and step % training.restart_dead_every == 0 and progress <= _SETTLED:
            self._restart_dead(progress)
        if self._follow_clusters(progress):
            # Prototypes with a loss of their own would run away from the descriptors that pseudo-labels draw to them.
            with torch.no_grad():
                self.prototypes.weight.copy_(self.memory.means(self.prototypes.unit()))
            return None
        return self._lower_loss(descriptors) if training.alternate else None

    def loss(self, descriptors: Tensor) -> Tensor:
        """What the prototypes follow, for descriptors (N, C)."""
        return prototype_loss(self.config.losses.prototypes, descriptors, self.prototypes.unit(), self.generator)

    def _lower_loss(self, descriptors: Tensor) -> float:
        """Some steps on descriptors that were encoded once, with the network's own step."""
        self.prototypes.requires_grad_(True)
        wanted = 16 * self.config.model.types
        if len(descriptors) < wanted and self.config.training.memory:
            descriptors = self.memory.latest(wanted)
        value = 0.0
        for _ in range(self.config.training.prototype_steps):
            loss = self.loss(descriptors)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self.optimiser.step()
            value = float(loss.detach())
        return value

    def _start_from_clusters(self) -> None:
        """Set the prototypes to the centres of clusters of descriptors: after the warm-up, and at each restart."""
        training, types = self.config.training, self.config.model.types
        self.started = True

        def clusters() -> Clusters:
            descriptors = self.memory.latest()
            if training.prototype_start == "spectral":
                seed, even, patches = training.seed, self.memory.even, self.memory.patches
                return spectral_clusters(descriptors, types, seed, even=even, patches=patches)
            return kmeans_clusters(descriptors, types, training.seed)

        # By way of the CPU: what is on the main process's device is not on the others'.
        found: Clusters = self.ranks.broadcast(lambda: clusters().to("cpu")).to(self.prototypes.weight.device)
        if self.config.losses.pseudo_labels.is_used():  # nothing else needs them
            self.memory.groups = found.group
        with torch.no_grad():
            self.prototypes.weight.copy_(found.centres)
        self.replaced()
        self.optimiser.state.clear()  # its averages belong to where the prototypes were

    def _follow_clusters(self, progress: float) -> bool:
        """Whether prototypes are the means of clusters in memory, for as long as pseudo-labels are in use."""
        return self.memory.groups is not None and value_at(self.config.losses.pseudo_labels.weight, progress) > 0

    def _restart_dead(self, progress: float) -> None:
        """Put prototypes to use that are nearest to hardly any descriptor."""
        if self._follow_clusters(progress):
            return  # all clusters have members, and a restart would end the pseudo-labels
        # Where types are expected to be even, a rare one is likely a misfit; elsewhere it may be a rare kind of object.
        least = 0.3 if self.memory.even else 0.1
        now = self.prototypes.unit().detach()

        def restarted() -> Tensor:
            return restart_dead_prototypes(now, self.memory.latest(), self.config.training.seed, least).cpu()

        wanted = self.ranks.broadcast(restarted).to(now.device)
        changed = (wanted != now).any(-1)  # (M,)
        if not bool(changed.any()):
            return
        with torch.no_grad():
            self.prototypes.weight[changed] = wanted[changed]
        self.replaced()
        self.memory.groups = None  # two of them are others now
