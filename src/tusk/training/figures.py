"""The task's own figures for display while a run goes on. Training and model selection never see them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tusk.config import Config
from tusk.data.dataset import Truth
from tusk.detection.merge import merge_fragments
from tusk.evaluation.localisation import localisation_figures
from tusk.evaluation.tally import ObjectTally
from tusk.model.network import Network

_PART = 50
_OBJECT_IMAGES = 100  # painting every layer of an image takes long


def task_figures(
    network: Network, config: Config, images: Tensor, truths: Sequence[Truth], class_count: int
) -> dict[str, float]:
    """What the truth allows: localisation and classification, or masks and attributes, or nothing; images uint8."""
    if not truths or len(truths) < len(images):
        return {}
    was_training = network.training
    network.eval()
    with torch.no_grad():
        if truths[0].mask is not None and config.model.decode == "layers":
            figures = _objects(network, config, images[:_OBJECT_IMAGES], truths[:_OBJECT_IMAGES])
        else:
            figures = _points(network, config, images, truths, class_count)
    network.train(was_training)
    return figures


def _points(
    network: Network, config: Config, images: Tensor, truths: Sequence[Truth], class_count: int
) -> dict[str, float]:
    if class_count == 0:
        return {}
    if any(truth.points is None or truth.classes is None or truth.boxes is None for truth in truths):
        return {}
    parts = range(0, len(images), _PART)
    outputs = [network(images[start : start + _PART].float() / 255, missing="empty") for start in parts]
    figures = localisation_figures(
        torch.cat([output.xy for output in outputs]).numpy(),
        torch.cat([output.label for output in outputs]).numpy(),
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
    for start in range(0, len(images), _PART):
        part = slice(start, start + _PART)
        shown = images[part].float() / 255
        tally.add(merge_fragments(network, shown, network(shown, missing="empty")), truths[part])
    figures: dict[str, float] = {}
    masks, attributes = tally.segmentation(), tally.attributes()
    if masks is not None and masks.objects:
        figures = {"ari_foreground": masks.ari_foreground, "mean_iou": masks.mean_iou}
    if attributes is not None:
        figures |= {accuracy.name: accuracy.many_to_one for accuracy in attributes.attributes}
        figures["matched"] = attributes.matched
    return figures
