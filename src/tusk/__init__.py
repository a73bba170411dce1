"""tusk: finds the recurring things in unlabelled images, as typed keypoints for many instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tusk.detection.detections import Detections
    from tusk.model.storage import StoredModel

__version__ = "0.2.0"
__all__ = ["Detections", "__version__", "load"]


def __getattr__(name: str) -> object:
    """Public names whose modules are slow to import are so only when they are asked for."""
    if name == "Detections":
        from tusk.detection.detections import Detections

        return Detections
    raise AttributeError(f"module 'tusk' has no attribute '{name}'")


def load(name_or_path: str | Path) -> StoredModel:
    """A model that comes with tusk, by its name, or one in a file or run folder that tusk saved."""
    # Imported here, so that `import tusk` stays quick: torch takes seconds.
    from pathlib import Path

    from tusk.errors import DataError, nearest
    from tusk.model.storage import load_model
    from tusk.weights import shipped_models

    path, shipped = Path(name_or_path), shipped_models()
    if path.is_dir():
        path = path / "model.safetensors"
    elif not path.exists() and str(name_or_path) in shipped:
        path = shipped[str(name_or_path)]
    elif not path.exists() and path.suffix == "":
        raise DataError(f"model '{name_or_path}'", "there is no such model or file", nearest(path.name, shipped))
    return load_model(path)
