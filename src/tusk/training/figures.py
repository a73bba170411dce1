"""The task's own figures for display while a run goes on. Training and model selection never use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from tusk.config import Config
from tusk.data.dataset import Truth
from tusk.detection.pipeline import BatchDetections, detect_batch, join_slots
from tusk.detection.settings import settings_from
from tusk.evaluation.localisation import localisation_figures
from tusk.evaluation.tally import ObjectTally
from tusk.model.network import Network

_BATCH = 50
_OBJECT_IMAGES = 100  # decoding every layer of an image takes long


def task_figures(
    network: Network, config: Config, images: Tensor, truths: Sequence[Truth], class_count: int
) -> dict[str, float]:
    """What the truth allows: localisation and classification, or masks and attributes, or nothing; images uint8."""
    if not truths or len(truths) < len(images):
        return {}
    if truths[0].mask is not None and config.model.decode == "layers":
        return _objects(network, config, images[:_OBJECT_IMAGES], truths[:_OBJECT_IMAGES])
    return _points(network, config, images, truths, class_count)


def _detect(network: Network, config: Config, images: Tensor) -> Iterator[BatchDetections]:
    settings = settings_from(config)
    for part in images.split(_BATCH):
        yield detect_batch(network, part.to(network.device).float() / 255, settings, skip_unused_gain=True)


def _points(
    network: Network, config: Config, images: Tensor, truths: Sequence[Truth], class_count: int
) -> dict[str, float]:
    if class_count == 0:
        return {}
    if any(truth.points is None or truth.classes is None or truth.boxes is None for truth in truths):
        return {}
    detections = list(_detect(network, config, images))
    kept = join_slots([part.kept for part in detections]).cpu().numpy()
    xy = join_slots([part.xy for part in detections]).cpu().numpy()
    figures = localisation_figures(
        np.where(kept[..., None], xy, -1e6),  # what is no detection is nowhere near
        join_slots([part.type for part in detections]).cpu().numpy(),
        [truth.points for truth in truths if truth.points is not None],
        [truth.classes for truth in truths if truth.classes is not None],
        type_count=config.model.types,
        class_count=class_count,
    )
    return {
        "localisation": figures.localisation,
        "classification": figures.classification,
        "both": figures.both,
    }


def _objects(network: Network, config: Config, images: Tensor, truths: Sequence[Truth]) -> dict[str, float]:
    tally = ObjectTally(config.model.types)
    for number, detections in enumerate(_detect(network, config, images)):
        tally.add(detections, truths[number * _BATCH : (number + 1) * _BATCH])
    figures: dict[str, float] = {}
    masks, attributes = tally.segmentation(), tally.attributes()
    if masks is not None and masks.objects:
        figures = {"ari_foreground": masks.ari_foreground, "mean_iou": masks.mean_iou}
    if attributes is not None:
        figures |= {accuracy.name: accuracy.many_to_one for accuracy in attributes.attributes}
        figures["matched"] = attributes.matched
    return figures
