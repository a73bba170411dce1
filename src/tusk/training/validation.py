"""Validation without a label: how a run is doing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config import Config
from tusk.detection.pipeline import detect_batch
from tusk.detection.settings import settings_from
from tusk.geometry.warp import sample_warp
from tusk.losses.mutual_information import joint_types, mutual_information_loss
from tusk.losses.two_views import two_views
from tusk.model.network import Network, eval_mode

_PART = 50  # images at a time
ALIKE = 1e-9  # squared error of the mean image: below it, images do not differ


@dataclass(frozen=True)
class ValidationFigures:
    """Figures over some images that training does not use; none of them needs a label."""

    alive_types: int  # types that at least one detection in a thousand has
    largest_share: float  # of the detections that are of one type
    confidence: float  # mean probability of the most likely type
    spread: float  # of the descriptors: 0 all alike, 1 in all directions
    reconstruction_error: float
    agreement: float  # mutual information of two views' types, from 0 to 1: see `two_view_agreement`
    explained_variance: float  # share of the variance between the images that is reconstructed, from 0 to 1

    @property
    def score(self) -> float:
        """What runs are compared by. Types can agree on the objects that were found while others are missed: that
        shows in the reconstruction."""
        return self.agreement * self.explained_variance

    def words(self, types: int) -> str:
        """One line for people."""
        return (
            f"{self.alive_types} of {types} types alive, largest {self.largest_share:.0%}, "
            f"confidence {self.confidence:.2f}, spread {self.spread:.2f}, error {self.reconstruction_error:.4f}, "
            f"agreement {self.agreement:.3f}, explained variance {self.explained_variance:.0%}"
        )


def validate(network: Network, config: Config, images: Tensor, seed: int) -> ValidationFigures:
    """images (N, 3, H, W), uint8; the network is left in the mode that it was in."""
    types, probability, descriptors, views, error = [], [], [], [], 0.0
    generator = torch.Generator().manual_seed(seed)
    settings, device = settings_from(config), network.device
    with torch.no_grad(), eval_mode(network):
        for start in range(0, len(images), _PART):
            part = images[start : start + _PART].to(device).float() / 255
            detections = detect_batch(network, part, settings, skip_unused_gain=True)
            types.append(detections.type[detections.kept])
            probability.append(detections.probability[detections.kept])
            descriptors.append(detections.descriptors[detections.kept])
            error += float(F.mse_loss(detections.reconstruction, part)) * len(part)
            views.append(_two_views(network, config, part, generator))
    counts = torch.bincount(torch.cat(types), minlength=config.model.types)
    shares = counts / counts.sum().clamp_min(1)
    first, second = (torch.cat(side) for side in zip(*views, strict=True))
    return ValidationFigures(
        alive_types=int((shares > 1e-3).sum()),
        largest_share=float(shares.max()),
        confidence=float(torch.cat(probability).sum() / counts.sum().clamp_min(1)),
        spread=float(1 - torch.cat(descriptors).sum(0).norm() / counts.sum().clamp_min(1)),
        reconstruction_error=error / len(images),
        agreement=two_view_agreement(first, second),
        explained_variance=explained_variance_of(error / len(images), images),
    )


def explained_variance_of(error: float, images: Tensor) -> float:
    """1 where the error is 0, 0 where the mean of the images (N, 3, H, W), uint8, would be no worse a guess.

    Images that are all alike have no variance to explain: then it is 1.
    """
    mean = mean_image_error(images)
    return max(0.0, 1 - error / mean) if mean > ALIKE else 1.0


def mean_image_error(images: Tensor) -> float:
    """images (N, 3, H, W) uint8 -> the error of their mean, taken for each of them."""
    values = images.float() / 255
    return float((values - values.mean(0)).square().mean())


def two_view_agreement(first: Tensor, second: Tensor) -> float:
    """Mutual information of the types (N, M) of the same points in two views, over its largest possible value.

    1 where every point has one sure type that both views agree on and all types are used alike; 0 where the views
    agree no more than by chance. It needs no label, and a training whose types are the true ones cannot do without it.
    """
    if len(first) == 0 or first.shape[1] == 1:
        return 0.0
    information = -float(mutual_information_loss(joint_types(first.cpu().double(), second.cpu().double())))
    return max(0.0, information / math.log(first.shape[1]))


def _two_views(network: Network, config: Config, images: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    warp = sample_warp(config.training.second_warp, len(images), generator, images.device)
    encoding = network.encode(torch.cat([images, warp.images(images)]))
    views = two_views(network, encoding, warp, images.shape)
    return views.types(network)
