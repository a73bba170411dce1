"""Which losses there are, and what each of them must be able to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch import Tensor, nn

from tusk.config import Config, LossSettings, value_at
from tusk.config.losses import register_settings

if TYPE_CHECKING:
    from tusk.losses.context import StepContext

Settings = TypeVar("Settings", bound=LossSettings)
Kind = TypeVar("Kind", bound="type[Loss[Any]]")

_registered: dict[str, type[Loss[Any]]] = {}


class Loss(nn.Module, Generic[Settings]):
    """One loss with its settings: a module, so that its buffers go where the network goes."""

    def __init__(self, settings: Settings, config: Config) -> None:
        super().__init__()
        del config  # for losses that depend on more than their own settings
        self.settings = settings

    def value(self, step: StepContext) -> Tensor:
        """The loss of a step, one number, not weighted yet."""
        raise NotImplementedError

    def weight(self, progress: float) -> float:
        return value_at(self.settings.weight, progress)

    def is_active(self, progress: float) -> bool:
        """Whether it is computed when this share of the training is done."""
        return self.weight(progress) > 0

    def forward(self, step: StepContext) -> Tensor:
        """The weighted loss, one number."""
        return self.weight(step.progress) * self.value(step)

    def state(self) -> dict[str, Tensor]:
        """What the next step depends on beside the network, by name: it is kept in checkpoints."""
        return {}

    def prototypes_replaced(self) -> None:
        """Forget what was gathered about types: from now on, they are others."""


def register(name: str, settings: type[LossSettings], order: int = 100) -> Callable[[Kind], Kind]:
    """Decorator: add a loss under the name that settings, logs and pages use; lower orders come first, then by name."""

    def add(loss: Kind) -> Kind:
        register_settings(name, settings, order)
        _registered[name] = loss
        return loss

    return add


def make_losses(config: Config) -> dict[str, Loss[Any]]:
    """The losses that a configuration uses, by name and in order."""
    return {name: _registered[name](settings, config) for name, settings in config.losses.used().items()}
