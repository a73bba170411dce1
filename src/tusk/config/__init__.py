"""The whole configuration: one tree of frozen models that presets, YAML files, flags and Python share.

Every value is checked when the tree is made; `tusk.presets` finds and merges the sources.
"""

from tusk.config.base import Part, Schedule, value_at
from tusk.config.data import DataConfig
from tusk.config.detection import DetectionConfig
from tusk.config.losses import ForegroundConfig, InfoNCEConfig, LossesConfig, OpacityConfig, PseudoLabelsConfig
from tusk.config.model import ModelConfig
from tusk.config.training import TrainingConfig, WarpConfig
from tusk.config.tree import Config

__all__ = [
    "Config",
    "DataConfig",
    "DetectionConfig",
    "ForegroundConfig",
    "InfoNCEConfig",
    "LossesConfig",
    "ModelConfig",
    "OpacityConfig",
    "Part",
    "PseudoLabelsConfig",
    "Schedule",
    "TrainingConfig",
    "WarpConfig",
    "value_at",
]
