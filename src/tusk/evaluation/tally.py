"""Objects and their detections, gathered batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tusk.data.dataset import Truth
from tusk.detection.pipeline import BatchDetections
from tusk.evaluation.clustering import (
    AttributeFigures,
    Matched,
    attribute_figures,
    match_inside,
    matched_objects,
    scored_names,
    thing_count,
    visible,
)
from tusk.evaluation.segmentation import SegmentationFigures, match_masks, pixel_tables, segmentation_figures

Int64Array = npt.NDArray[np.int64]


class ObjectTally:
    """Objects are matched with detections by masks where the network has layers, else by points that lie on them."""

    def __init__(self, type_count: int) -> None:
        self._type_count = type_count
        self._tables: list[Int64Array] = []
        self._among_layers: list[Int64Array] = []
        self._matched: list[Matched] = []
        self._attributes: tuple[tuple[str, int], ...] = ()  # names and numbers of values
        self._true_counts: list[int] = []

    @property
    def true_counts(self) -> Int64Array:
        """(N,): how many objects can be seen in each image so far."""
        return np.array(self._true_counts, np.int64)

    def add(self, detections: BatchDetections, truths: Sequence[Truth]) -> None:
        """The detections of some images, and the truth about them."""
        kept, types = detections.kept.cpu().numpy(), detections.type.cpu().numpy()
        xy = detections.xy.cpu().numpy()
        chosen = self._by_masks(detections, truths)
        for image, truth in enumerate(truths):
            self._true_counts.append(int(visible(truth).sum()))
            names = scored_names(truth)
            if not names:
                continue
            self._attributes = tuple((name, len(truth.attributes[name].names)) for name in names)
            if chosen is None:
                own = match_inside(truth, xy[image], kept[image])
            else:
                own = np.where(kept[image][chosen[image]], chosen[image], -1)
            self._matched.append(matched_objects(truth, types[image], own))

    def _by_masks(self, detections: BatchDetections, truths: Sequence[Truth]) -> Int64Array | None:
        """(B, n): the keypoint of each object; None without layers or without true masks."""
        masks = [truth.mask for truth in truths if truth.mask is not None]
        predicted, among_layers = detections.labels(), detections.labels(background=False)
        if predicted is None or among_layers is None or len(masks) < len(truths):
            return None
        true = np.stack(masks)
        most = max(int(true.max()), *(thing_count(truth) for truth in truths))
        labels = (most + 1, detections.type.shape[1] + 1)
        self._tables.append(pixel_tables(true, predicted.cpu().numpy(), *labels))
        self._among_layers.append(pixel_tables(true, among_layers.cpu().numpy(), *labels))
        return match_masks(self._among_layers[-1])

    def segmentation(self) -> SegmentationFigures | None:
        """None where there are no masks to compare."""
        return segmentation_figures(self._tables, self._among_layers) if self._tables else None

    def attributes(self) -> AttributeFigures | None:
        """None where the objects have no attributes."""
        if not self._matched:
            return None
        names, counts = zip(*self._attributes, strict=True)
        return attribute_figures(self._matched, names, counts, self._type_count)
