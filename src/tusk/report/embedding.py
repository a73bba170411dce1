"""Descriptors and prototypes on a plane (t-SNE): what is alike lies together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.report.predictions import Predictions

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.int64]

_MOST = 1000  # descriptors: more take minutes
_LEAST = 100  # fewer show nothing


@dataclass(frozen=True)
class Embedding:
    """Places in [0, 1] x [0, 1]."""

    descriptors: FloatArray  # (n, 2)
    chosen: IntArray  # (n,): which keypoints those are, in the flattened (N*K)
    prototypes: FloatArray  # (M, 2)


def embed(predictions: Predictions, prototypes: Tensor) -> Embedding | None:
    """None where there are too few descriptors. The same input gives the same picture."""
    where = np.nonzero(predictions.found.flatten().numpy())[0]
    if len(where) < _LEAST:
        return None
    # Evenly over all images, not the first of them.
    chosen = where[np.unique(np.linspace(0, len(where) - 1, min(_MOST, len(where))).astype(np.int64))]
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    joined = torch.cat([predictions.descriptors.flatten(0, 1)[torch.from_numpy(chosen)], prototypes]).float().numpy()
    perplexity = min(30.0, (len(joined) - 1) / 4)
    with threadpool_limits(1):  # with several threads the sums, and so the picture, differ from time to time
        start = _principal_plane(joined)
        plane = TSNE(2, perplexity=perplexity, init=start, random_state=0, n_jobs=1).fit_transform(joined)
    low, high = plane.min(0), plane.max(0)
    plane = (plane - low) / np.maximum(high - low, 1e-9)
    return Embedding(plane[: len(chosen)], chosen.astype(np.int64), plane[len(chosen) :])


def _principal_plane(values: FloatArray) -> FloatArray:
    """(n, C) -> (n, 2), tiny: where t-SNE starts. Random where all are alike, for then there is no plane."""
    centred = values - values.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    plane = left[:, :2] * sizes[:2]
    if plane.shape[1] < 2 or sizes[1] < 1e-6:
        plane = np.random.default_rng(0).standard_normal((len(values), 2))
    start: FloatArray = (1e-4 * plane / plane.std(0)[0]).astype(np.float32)
    return start
