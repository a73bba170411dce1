"""Is the number of things right? A keypoint counts where its gain passes a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class CountFigures:
    exact: float  # share of images whose number is right
    error: float  # mean absolute difference
    threshold: float  # least gain of a keypoint that counts


def count_figures(
    gains: npt.NDArray[np.floating],
    found: npt.NDArray[np.bool_],
    true: npt.NDArray[np.integer],
    threshold: float,
) -> CountFigures:
    """gains (N, K) and found (N, K) of N images; true (N,) numbers of things."""
    counted = ((gains >= threshold) & found).sum(1)
    wrong = np.abs(counted - true)
    return CountFigures(float((wrong == 0).mean()), float(wrong.mean()), threshold)
