"""tusk: finds the recurring things in unlabelled images, as typed keypoints for many instances."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tusk import datasets
    from tusk.api.loading import load
    from tusk.api.model import Model, list_models
    from tusk.api.training import train
    from tusk.detection.detections import Detections

__version__ = "0.2.0"
__all__ = ["Detections", "Model", "__version__", "datasets", "list_models", "load", "train"]


def __getattr__(name: str) -> object:
    """Imports a public name when it is first asked for, so that `import tusk` stays quick: torch takes seconds."""
    if name == "datasets":
        return importlib.import_module("tusk.datasets")
    if name == "Detections":
        return importlib.import_module("tusk.detection.detections").Detections
    if name in __all__:
        return getattr(importlib.import_module("tusk.api"), name)
    raise AttributeError(f"module 'tusk' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
