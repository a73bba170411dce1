"""All losses of one step: what the network lowers, and what the prototypes lower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.config import Config, LossesConfig, value_at
from tusk.geometry.warp import Warp
from tusk.losses.clustering import kmeans_loss, nearest_prototype_loss, sliced_wasserstein, vector_quantisation
from tusk.losses.equivariance import equivariance_loss, unit_map
from tusk.losses.mutual_information import joint_types, mutual_information_loss
from tusk.model.keypoints import read_bilinear
from tusk.model.network import Encoding, Network, standardise_map
from tusk.training.distributed import Ranks

Reconstruction = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Terms:
    """Every term of the network's loss, already weighted; one number each."""

    reconstruction: Tensor
    kmeans: Tensor
    score_equivariance: Tensor
    feature_equivariance: Tensor
    mutual_information: Tensor
    quantisation: Tensor

    def total(self) -> Tensor:
        return torch.stack([getattr(self, field.name) for field in fields(self)]).sum()


class Objective(nn.Module):
    """The network's loss, as a module: DistributedDataParallel wraps it and adds up the processes' gradients."""

    joint: Tensor  # (M, M)

    def __init__(self, network: Network, config: Config, reconstruction_loss: Reconstruction, ranks: Ranks) -> None:
        super().__init__()
        self.network = network
        self.config = config
        self.ranks = ranks
        self._reconstruction_loss = reconstruction_loss
        network.descriptor_space.over_ranks = ranks.mean
        types = config.model.types
        # How types met in the last batches; all zeros before the first.
        self.register_buffer("joint", torch.zeros(types, types))

    def forward(self, images: Tensor, warp: Warp, progress: float) -> tuple[Terms, Tensor]:
        """images (2n, 3, H, W): n first views, then their second views = warp(first) -> terms, descriptors (2n, K, C).

        A term whose weight is 0 is not computed.
        """
        network, losses, training = self.network, self.config.losses, self.config.training
        pairs = len(images) // 2
        zero = images.new_zeros(())
        seen = network.encode(images)

        carried, quantisation = seen.descriptors, zero
        if losses.prototypes.kind == "vector-quantisation" and progress >= training.warm_up:
            carried, quantisation = vector_quantisation(seen.descriptors, network.prototypes.unit())
        variance = None if training.variance is None else value_at(training.variance, progress)
        shown = slice(pairs if losses.reconstruction.views == "first" else 2 * pairs)
        size = (images.shape[-2], images.shape[-1])
        decoded = network.decode(seen.keypoints[shown], carried[shown], size, variance)
        painted = self._reconstruction_loss(images[shown], decoded.reconstruction)
        reconstruction = value_at(losses.reconstruction.weight, progress) * painted

        kmeans = zero
        if (weight := value_at(losses.kmeans.weight, progress)) > 0:
            scale = value_at(losses.kmeans.scale, progress)
            kmeans = weight * kmeans_loss(network.prototypes.log_probability(seen.descriptors, scale))

        score_equivariance = feature_equivariance = zero
        masked = losses.equivariance.masked
        if (weight := value_at(losses.equivariance.score_weight, progress)) > 0:
            maps = seen.score_map
            score_equivariance = weight * equivariance_loss(maps[:pairs], maps[pairs:], warp, masked=masked)
        if (weight := value_at(losses.equivariance.feature_weight, progress)) > 0:
            maps = _feature_form(seen, losses)
            feature_equivariance = weight * equivariance_loss(maps[:pairs], maps[pairs:], warp, masked=masked)

        information = zero
        if (weight := value_at(losses.mutual_information.weight, progress)) > 0:
            views = two_view_types(network, seen, warp, images.shape, losses.mutual_information.temperature)
            settings = losses.mutual_information
            joint = joint_types(*views, self.ranks.mean)
            information = weight * mutual_information_loss(joint, settings.evenness, self._usual(joint))
        terms = Terms(reconstruction, kmeans, score_equivariance, feature_equivariance, information, quantisation)
        return terms, seen.descriptors

    @torch.no_grad()
    def _usual(self, joint: Tensor) -> Tensor:
        """The joint distribution of types over the last batches, this one included."""
        memory = self.config.losses.mutual_information.memory
        usual = self.joint.mul(memory).add(joint, alpha=1 - memory) if bool(self.joint.any()) else joint
        self.joint.copy_(usual)
        return usual


def prototype_loss(network: Network, losses: LossesConfig, descriptors: Tensor, generator: torch.Generator) -> Tensor:
    """What the prototypes follow, for descriptors (N, C) that do not change."""
    prototypes = network.prototypes.unit()
    settings = losses.prototypes
    if settings.kind == "sliced-wasserstein":
        return sliced_wasserstein(
            descriptors,
            prototypes,
            generator=generator,
            projections=settings.projections,
            noise=settings.noise,
            rounding=settings.rounding,
            extra_mixing=settings.extra_mixing,
        )
    # Vector quantisation's own loss for the codebook is this one too.
    return nearest_prototype_loss(descriptors, prototypes)


def _feature_form(seen: Encoding, losses: LossesConfig) -> Tensor:
    """The feature map (2n, C, h, w) in the units in which its equivariance is measured."""
    if losses.equivariance.features == "unit":
        return unit_map(seen.feature_map)
    if losses.equivariance.features == "standardised":
        return standardise_map(seen.feature_map, seen.statistics)
    return seen.feature_map


def two_view_types(
    network: Network, seen: Encoding, warp: Warp, shape: torch.Size, temperature: float
) -> tuple[Tensor, Tensor]:
    """The types of the second view's keypoints and of the places in the first that they come from: (N, M) each."""
    pairs = len(seen.feature_map) // 2
    height, width = shape[-2:]
    second_xy = seen.keypoints.xy[pairs:].detach()  # (n, K, 2)
    image_xy = warp.source_points(network.to_image(second_xy), height, width)  # (n, K, 2) in the first view
    limit = image_xy.new_tensor([width - 1, height - 1])
    usable = ((image_xy >= 0) & (image_xy <= limit)).all(-1) & seen.keypoints.found[pairs:]  # (n, K)
    prototypes = network.prototypes.unit().detach()  # only the encoder learns from this

    def types(feature_map: Tensor, xy: Tensor) -> Tensor:
        raw = read_bilinear(feature_map, xy)  # (n, K, C)
        standardised = network.descriptor_space.space == "standardised"
        values = seen.statistics.standardise(raw) if standardised else raw
        cosine = F.normalize(values, dim=-1) @ prototypes.T  # (n, K, M)
        return (cosine / temperature).softmax(-1)[usable]  # (N, M)

    return types(seen.feature_map[:pairs], network.to_map(image_xy)), types(seen.feature_map[pairs:], second_xy)
