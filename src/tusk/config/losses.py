"""The settings of the losses: each loss brings its own (see `tusk.losses`), and they are gathered here.

`LossesConfig` gets a field for every loss that is registered, in this package or outside of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from pydantic.fields import FieldInfo

from tusk.config.base import Part, Schedule
from tusk.config.model import ModelConfig


class LossSettings(Part):
    """What every loss has; the settings of a loss derive from this."""

    weight: Schedule = 0.0
    """Factor of this loss in the sum that training lowers; where it is 0, the loss is not computed."""

    def is_used(self) -> bool:
        """Whether the weight is ever other than 0."""
        return self.weight != 0

    def splits_over_images(self) -> bool:
        """Whether the loss of a batch is the mean of the losses of its parts, as `training.micro_batch` needs it."""
        return True

    def refusal(self, model: ModelConfig) -> str | None:
        """Why this loss cannot be used with that network, or None."""
        del model
        return None


class LossesConfig(Part):
    """The settings of every registered loss, by its name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **values: Any) -> None:
        load_losses()
        super().__init__(**values)

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        load_losses()
        return super().model_validate(obj, **options)

    def used(self) -> dict[str, LossSettings]:
        """The settings of the losses whose weight is ever other than 0, by name."""
        every = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: each for name, each in every.items() if isinstance(each, LossSettings) and each.is_used()}


_registered: dict[str, tuple[int, type[Part]]] = {}
_containing: list[type[Part]] = [LossesConfig]  # the models to be built again when a loss is added, inner ones first
_outdated: set[type[Part]] = set()


def register_settings(name: str, settings: type[Part], order: int = 100) -> None:
    """Let `losses.NAME` hold these settings; lower orders come first, equal ones by name."""
    known = _registered.get(name)
    if known is not None and known[1].__qualname__ != settings.__qualname__:
        raise ValueError(f"there is already a loss called '{name}': {known[1].__qualname__}")
    if not name.isidentifier():
        raise ValueError(f"a loss's name must be a Python name, not '{name}'")
    _registered[name] = (order, settings)
    fields, hints = LossesConfig.model_fields, LossesConfig.__annotations__
    fields.clear()
    for each in sorted(_registered, key=lambda each: (_registered[each][0], each)):
        kind = _registered[each][1]
        hints[each] = kind
        fields[each] = FieldInfo(annotation=kind, default=kind())
    _outdated.update(_containing)


def load_losses() -> None:
    """See to it that the losses of this package are registered, and that the configuration knows all that are."""
    # By name: the losses belong to a higher layer, and need torch, which takes a second to import.
    import_module("tusk.losses")
    for model in _containing if _outdated else ():
        model.model_rebuild(force=True)
    _outdated.clear()


def contains_losses(model: type[Part]) -> None:
    """Have a model that holds a `LossesConfig` built again whenever a loss is added."""
    _containing.append(model)
