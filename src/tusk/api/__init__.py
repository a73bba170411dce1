"""What notebooks use and the command line calls: train, load, Model, and the runs that write folders of results.

Nothing heavy is imported before it is asked for: `tusk.train`, `tusk.load` and the rest lead here.
"""

from __future__ import annotations

import importlib

from tusk.allocator import keep_memory

# Before torch allocates: training is several times faster so.
keep_memory()

_HOMES = {
    "Encoding": "tusk.detection.encoding",
    "Figures": "tusk.evaluation.results",
    "Model": "tusk.api.model",
    "list_models": "tusk.api.model",
    "OnnxModel": "tusk.detection.onnx_model",
    "load": "tusk.api.loading",
    "train": "tusk.api.training",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Public names whose modules are slow to import are so only when they are asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tusk.api' has no attribute '{name}'")
