"""CelebA's and Human3.6M's measure: how well one linear layer reads human landmarks off the keypoints.

The layer has no bias and is fitted in closed form on training images; a ridge keeps entries that are seldom used in
bounds. Its size is chosen among a few by how well each training image is predicted from all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
FloatArray = npt.NDArray[np.floating]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_RIDGES = 10.0 ** np.arange(-6, 3)  # times the mean square of the entries that are in use


@dataclass(frozen=True)
class LandmarkFigures:
    error: float  # mean distance over the unit of each image
    by_landmark: tuple[float, ...]  # NaN for a landmark that is visible nowhere
    fitted_on: int  # training images
    scored_on: int  # images


def typed_tensor(xy: FloatArray, types: Int64Array, found: BoolArray, type_count: int) -> Float64Array:
    """xy (N, K, 2), types (N, K), found (N, K) -> (N, M, K, 2): points of type m, sorted by x, in [m, 0..n-1]; else 0.

    Coordinates are from the image's corner, as in the paper: a point never lies at 0, which means "none".
    """
    images, keypoints = types.shape
    order = np.argsort(xy[..., 0], axis=1, kind="stable")
    xy = np.take_along_axis(xy, order[..., None], 1)
    types, found = np.take_along_axis(types, order, 1), np.take_along_axis(found, order, 1)
    tensor = np.zeros((images, type_count, keypoints, 2))
    own = np.where(found, types, -1)
    # How many of the points to the left are of the same type.
    same = own[:, :, None] == own[:, None, :]  # (N, K, K)
    rank = np.tril(same, -1).sum(2)
    image, keypoint = np.nonzero(found)
    tensor[image, own[image, keypoint], rank[image, keypoint]] = xy[image, keypoint] + 0.5
    return tensor


def fit_landmarks(tensor: Float64Array, landmarks: FloatArray) -> Float64Array:
    """tensor (N, M, K, 2), landmarks (N, T, 2) in the same pixels, NaN where not visible -> weights (M*K*2, T, 2)."""
    inputs = tensor.reshape(len(tensor), -1)  # (N, D)
    targets = np.asarray(landmarks, np.float64) + 0.5
    weights = np.zeros((inputs.shape[1], *targets.shape[1:]))
    visible = ~np.isnan(targets).any(2)  # (N, T)
    # Landmarks that are visible in the same images are fitted together.
    patterns, pattern_of = np.unique(visible, axis=1, return_inverse=True)
    for number, rows in enumerate(patterns.T):
        own = np.flatnonzero(pattern_of.reshape(-1) == number)
        if rows.any():
            wanted = targets[np.ix_(rows, own)].reshape(int(rows.sum()), -1)
            weights[:, own] = _ridge(inputs[rows], wanted).reshape(-1, len(own), 2)
    return weights


def _ridge(inputs: Float64Array, targets: Float64Array) -> Float64Array:
    """inputs (N, D), targets (N, E) -> (D, E), with the ridge that predicts left-out rows best."""
    used = np.flatnonzero(inputs.any(0))
    weights = np.zeros((inputs.shape[1], targets.shape[1]))
    if not len(used):
        return weights
    squares, axes = np.linalg.eigh(inputs[:, used].T @ inputs[:, used])
    squares = np.maximum(squares, 0)
    turned = inputs[:, used] @ axes  # (N, D')
    product = turned.T @ targets
    best, least = weights, np.inf
    for ridge in _RIDGES * squares.mean():
        solved = product / (squares + ridge)[:, None]
        # A row's own pull on its prediction is known in closed form, so nothing has to be fitted again without it.
        pull = (turned**2 / (squares + ridge)).sum(1)
        missed = (targets - turned @ solved) / np.maximum(1 - pull, 1e-9)[:, None]
        if (error := float((missed**2).sum())) < least:
            best, least = solved, error
    weights[used] = axes @ best
    return weights


def predict_landmarks(weights: Float64Array, tensor: Float64Array) -> Float64Array:
    """weights (M*K*2, T, 2), tensor (N, M, K, 2) -> (N, T, 2) pixels."""
    landmarks: Float64Array = np.tensordot(tensor.reshape(len(tensor), -1), weights, 1) - 0.5
    return landmarks


def landmark_figures(predicted: FloatArray, true: FloatArray, unit: FloatArray, *, fitted_on: int) -> LandmarkFigures:
    """predicted and true (N, T, 2), unit (N,) the length that counts as 1 in each image.

    Landmarks that are NaN are left out, and images whose unit is not a positive number.
    """
    usable = np.isfinite(unit) & (unit > 0)
    apart = np.linalg.norm(np.asarray(predicted, np.float64) - true, axis=2)  # (N, T)
    shares = apart[usable] / unit[usable, None]
    known = ~np.isnan(shares)
    sums, counts = np.where(known, shares, 0).sum(0), known.sum(0)
    by_landmark = tuple(
        float(total / count) if count else float("nan") for total, count in zip(sums, counts, strict=True)
    )
    error = float(sums.sum() / counts.sum()) if counts.sum() else float("nan")
    return LandmarkFigures(error, by_landmark, fitted_on, int(known.any(1).sum()))


def eye_distance(landmarks: FloatArray) -> Float64Array:
    """(N, T, 2) with the two eyes first -> (N,)."""
    return np.asarray(np.linalg.norm(landmarks[:, 0] - landmarks[:, 1], axis=1), np.float64)
