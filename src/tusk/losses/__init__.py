"""The losses, one file each: the function, its settings, its name. None of them sees a label.

A new loss is one new file, here or anywhere else, that is imported before the configuration is made:

    from tusk.losses import Loss, LossSettings, StepContext, register

    class SparsityConfig(LossSettings):
        power: float = 1.0

    @register("sparsity", SparsityConfig)
    class Sparsity(Loss[SparsityConfig]):
        '''Scores should be low.'''

        def value(self, step: StepContext) -> Tensor:
            return step.encoding.score_map.pow(self.settings.power).mean()

and one line in a preset or YAML file, `losses: {sparsity: {weight: 0.1}}`. The name is the same in the settings, in the
logs and on the page of a run.
"""

from importlib import import_module
from pkgutil import iter_modules

from tusk.config import LossSettings
from tusk.losses.context import StepContext
from tusk.losses.registry import Loss, make_losses, register

__all__ = ["Loss", "LossSettings", "StepContext", "make_losses", "register"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
