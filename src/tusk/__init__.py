"""tusk: finds the recurring things in unlabelled images, as typed keypoints for many instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tusk.model.storage import StoredModel

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def load(path: str | Path) -> StoredModel:
    """The model in a file that tusk saved: its network, ready for use, and the configuration that made it."""
    # Imported here, so that `import tusk` stays quick: torch takes seconds.
    from pathlib import Path

    from tusk.model.storage import load_model

    return load_model(Path(path))
