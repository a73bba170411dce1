"""Scores of keypoints with sizes, by their size and by those nearby: soft non-maximum suppression (after Bodla et al.
2017).

The nearer a keypoint is to a better one, the better it has to be itself: a sure one beside another is a thing that
touches it, an unsure one is most likely a part of it. Hard suppression has one distance for both, and loses things
that touch or keeps parts. Without torch: ONNX models use it too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]


def scores_by_size(score: FloatArray, size: FloatArray, usual: float | None) -> FloatArray:
    """score (N,), diameter (N,) -> (N,): those of things that are smaller than usual count for less."""
    return score if usual is None else score * np.sqrt(np.minimum(size / usual, 1))


def lowered_scores(
    xy: FloatArray, radius: FloatArray, score: FloatArray, reach: tuple[float, float] | None, least: float
) -> npt.NDArray[np.float64]:
    """xy (N, 2), radius (N,), score (N,) -> (N,) scores, 0 for those that fall below `least`.

    From the best on, each that is kept multiplies the scores of the others by a factor that rises from 0 at the first
    distance of `reach` to 1 at the second, both in radii of the larger of the two. None: they let each other be.
    """
    if reach is None:
        return np.where(score < least, 0.0, score).astype(np.float64)
    near, far = reach
    left = np.asarray(score, np.float64).copy()  # what those that are not settled yet have at the moment
    final = np.zeros(len(left))
    for _ in range(len(left)):
        best = int(left.argmax())
        if left[best] < least or left[best] <= 0:
            break
        final[best] = left[best]
        apart = np.hypot(*(xy - xy[best]).T) / np.maximum(radius, radius[best])  # (N,)
        left *= np.clip((apart - near) / (far - near), 0, 1)
        left[best] = 0  # settled, also where `near` is below 0
    return final
