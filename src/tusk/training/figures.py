"""The task's own figures for display while a run goes on. Training and model selection never see them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tusk.config import Config
from tusk.data.dataset import Truth
from tusk.evaluation.localisation import localisation_figures
from tusk.model.network import Network

_PART = 50


def task_figures(
    network: Network, config: Config, images: Tensor, truths: Sequence[Truth], class_count: int
) -> dict[str, float]:
    """Localisation and classification where the truth has points and classes, otherwise nothing; images uint8."""
    if len(truths) < len(images) or class_count == 0:
        return {}
    if any(truth.points is None or truth.classes is None or truth.boxes is None for truth in truths):
        return {}
    was_training = network.training
    network.eval()
    with torch.no_grad():
        parts = range(0, len(images), _PART)
        outputs = [network(images[start : start + _PART].float() / 255, missing="empty") for start in parts]
    network.train(was_training)
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
