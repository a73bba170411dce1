"""Landmark error on the images of one sample, beside that of a guess that is the same for every image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Truth
from tusk.data.datasets.h36m import JOINT_NAMES, swap_left_right
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.evaluation.landmarks import eye_distance, fit_landmarks, landmark_figures, predict_landmarks, typed_tensor

_FOLDS = 5  # each part is predicted from a fit to the others


@dataclass(frozen=True)
class LandmarkCheck:
    error: float  # mean distance from the true landmarks of what one linear layer reads off the points
    mean_guess: float  # the same for the landmarks' mean places
    unit: str  # what both are shares of
    images: int


def are_landmarks(class_names: tuple[str, ...], truths: tuple[Truth, ...]) -> bool:
    """Whether the truth is the landmarks of one face or person in each image, and not things to find."""
    names = tuple(class_names)
    if names not in (tuple(LANDMARKS), tuple(JOINT_NAMES)) or not truths:
        return False
    return all(truth.points is not None and len(truth.points) == len(names) for truth in truths)


def check_landmarks(
    xy: npt.NDArray[np.floating],
    types: npt.NDArray[np.int64],
    found: npt.NDArray[np.bool_],
    truths: tuple[Truth, ...],
    type_count: int,
    side: int,
) -> LandmarkCheck | None:
    """xy (N, K, 2), types and found (N, K) against landmarks; None with too few images to fit anything.

    `tusk evaluate` fits on training images and is the figure to quote. Here the images are all there is: each fifth of
    them is predicted from a fit to the others, and so is the guess.
    """
    if len(truths) < 2 * _FOLDS:
        return None
    true = np.stack([truth.points for truth in truths if truth.points is not None]).astype(np.float64)
    faces = true.shape[1] == len(LANDMARKS)
    if not faces:
        true = swap_left_right(true).astype(np.float64)
    unit = eye_distance(true) if faces else np.full(len(true), float(side))
    typed = typed_tensor(xy, types, found, type_count)
    predicted, guessed = np.empty_like(true), np.empty_like(true)
    for fold in range(_FOLDS):
        held = np.arange(len(true)) % _FOLDS == fold
        predicted[held] = predict_landmarks(fit_landmarks(typed[~held], true[~held]), typed[held])
        guessed[held] = _mean_places(true[~held])
    error, guess = (landmark_figures(places, true, unit, fitted_on=len(true)).error for places in (predicted, guessed))
    return LandmarkCheck(error, guess, "the distance between the eyes" if faces else "the image's side", len(true))


def _mean_places(true: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(N, T, 2), NaN where a landmark is not visible -> (T, 2)."""
    seen = np.isfinite(true)
    mean: npt.NDArray[np.float64] = np.where(seen, true, 0).sum(0) / np.maximum(seen.sum(0), 1)
    return mean
