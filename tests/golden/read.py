"""Reads the golden files of this folder."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_HERE = Path(__file__).parent


def read_golden(name: str) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name; float arrays stored as byte planes (4, size) + shape are joined again."""
    stored = np.load(_HERE / f"{name}.npz")
    arrays = {}
    for key in stored.files:
        if key.startswith("planes/"):
            bare = key.removeprefix("planes/")
            shape = tuple(stored[f"shape/{bare}"])
            arrays[bare] = np.ascontiguousarray(stored[key].T).view("<f4").reshape(shape)
        elif not key.startswith("shape/"):
            arrays[key] = stored[key]
    return arrays
