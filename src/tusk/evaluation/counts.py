"""Is the number of things right?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class CountFigures:
    exact: float  # share of images whose number is right
    error: float  # mean absolute difference


def count_figures(counted: npt.NDArray[np.integer], true: npt.NDArray[np.integer]) -> CountFigures:
    """counted and true (N,): numbers of things in N images."""
    wrong = np.abs(counted - true)
    return CountFigures(float((wrong == 0).mean()), float(wrong.mean()))
