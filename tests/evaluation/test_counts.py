"""Numbers of things."""

import numpy as np

from tusk.evaluation.counts import count_figures


def test_counts():
    result = count_figures(np.array([2, 1, 3, 5]), np.array([2, 2, 3, 3]))
    assert (result.exact, result.error) == (0.5, 0.75)
