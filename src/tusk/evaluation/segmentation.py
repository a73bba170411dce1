"""How well predicted masks are the true ones: adjusted Rand index and IoU, from tables of pixel counts.

A table counts, for one image, the pixels of every pair of a true and a predicted label; label 0 is the background.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

IntArray = npt.NDArray[np.integer]
Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SegmentationFigures:
    """Means over images, or over true objects; NaN where there is none of them."""

    ari_foreground: float  # over pixels that are foreground in the truth; images without an object are left out
    ari_foreground_strict: float  # the same, but pixels that the background takes are a cluster of their own
    ari: float  # over all pixels, the background being one more cluster
    mean_iou: float  # of the true objects, matched one to one with predicted masks; 0 where unmatched
    objects: int


def pixel_tables(true: IntArray, predicted: IntArray, true_labels: int, predicted_labels: int) -> Int64Array:
    """Masks (N, H, W) and label maps (N, H, W) -> (N, true_labels, predicted_labels), in one pass over the pixels."""
    images = len(true)
    size = true_labels * predicted_labels
    pair = true.astype(np.int64) * predicted_labels + predicted
    pair += size * np.arange(images)[:, None, None]
    return np.bincount(pair.ravel(), minlength=images * size).reshape(images, true_labels, predicted_labels)


def adjusted_rand(tables: Int64Array) -> FloatArray:
    """(N, T, P) -> (N,): 1 for the same clusters, about 0 for clusters by chance (Hubert and Arabie 1985).

    Two clusterings that both put everything together, or both everything apart, are the same: 1. So an image with a
    single object scores 1 where all of its pixels have one label and 0 otherwise. Without any pixel it is NaN.
    """
    counts = tables.astype(np.float64)  # products of pairs of pixels outgrow int64 on large images
    pixels = counts.sum((1, 2))
    together = (counts**2).sum((1, 2))
    rows, columns = (counts.sum(2) ** 2).sum(1), (counts.sum(1) ** 2).sum(1)
    # Ordered pairs of pixels: together in both, only in the truth, only in the prediction, in neither.
    both, truth_only, predicted_only = together - pixels, rows - together, columns - together
    neither = pixels**2 - rows - columns + together
    above = 2 * (both * neither - truth_only * predicted_only)
    below = (both + truth_only) * (truth_only + neither) + (both + predicted_only) * (predicted_only + neither)
    same = (truth_only == 0) & (predicted_only == 0)
    index = np.where(same, 1.0, above / np.where(below == 0, 1.0, below))
    return np.where(pixels == 0, np.nan, index)


def mask_iou(tables: Int64Array) -> FloatArray:
    """(N, T, P) -> (N, T-1, P-1): of every true object with every predicted one; 0 where both are empty."""
    common = tables[:, 1:, 1:].astype(np.float64)
    either = tables[:, 1:].sum(2)[:, :, None] + tables[:, :, 1:].sum(1)[:, None] - common
    iou: FloatArray = common / np.maximum(either, 1)
    return iou


def best_pairs(value: FloatArray) -> Int64Array:
    """(N, T, P) -> (N, T): the column of every row, one to one with the largest sum; -1 where that adds nothing."""
    chosen = np.full(value.shape[:2], -1, np.int64)
    for image, table in enumerate(value):
        rows, columns = linear_sum_assignment(table, maximize=True)
        kept = table[rows, columns] > 0
        chosen[image, rows[kept]] = columns[kept]
    return chosen


def object_ious(tables: Int64Array) -> FloatArray:
    """(N, T, P) -> (N, T-1): the IoU of each true object with the mask it is matched with, NaN without a pixel."""
    iou = mask_iou(tables)
    chosen = best_pairs(iou)
    if iou.shape[2] == 0:
        own = np.zeros(chosen.shape)
    else:
        own = np.take_along_axis(iou, np.maximum(chosen, 0)[..., None], 2)[..., 0] * (chosen >= 0)
    return np.where(tables[:, 1:].sum(2) == 0, np.nan, own)


def match_masks(tables: Int64Array, least: float = 0.5) -> Int64Array:
    """(N, T, P) -> (N, T-1): the predicted object of each true one, counted from 0; -1 for none.

    One to one by IoU of at least `least`, over pixels that are foreground in the truth, like the paper's ARI: a network
    without a background has to give the rest to some layer.
    """
    foreground = tables.copy()
    foreground[:, 0] = 0
    iou = mask_iou(foreground)
    return best_pairs(np.where(iou >= least, iou, 0.0))


def segmentation_figures(tables: list[Int64Array], among_layers: list[Int64Array]) -> SegmentationFigures:
    """From the tables of all images, in parts of any shape (N, T, P).

    `among_layers` are those of label maps in which layers share out all pixels among themselves, as the paper's
    networks do, which have no background.
    """
    foreground = np.concatenate([adjusted_rand(part[:, 1:]) for part in among_layers])
    strict = np.concatenate([adjusted_rand(part[:, 1:]) for part in tables])
    whole = np.concatenate([adjusted_rand(part) for part in tables])
    ious = np.concatenate([object_ious(part).ravel() for part in tables])
    known = ~np.isnan(ious)
    return SegmentationFigures(
        ari_foreground=_mean(foreground),
        ari_foreground_strict=_mean(strict),
        ari=_mean(whole),
        mean_iou=_mean(ious),
        objects=int(known.sum()),
    )


def _mean(values: FloatArray) -> float:
    """Over what is not NaN; NaN where there is nothing."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
