"""All losses of one step: what the network lowers, and what the prototypes lower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.config import Config, LossesConfig, value_at
from tusk.geometry.sampling import sample_bilinear
from tusk.geometry.warp import Warp
from tusk.losses.clustering import kmeans_loss, nearest_prototype_loss, sliced_wasserstein, vector_quantisation
from tusk.losses.equivariance import equivariance_loss, unit_map
from tusk.losses.foreground import background_residual, foreground_loss, on_background
from tusk.losses.info_nce import info_nce_loss
from tusk.losses.mutual_information import joint_types, mutual_information_loss
from tusk.losses.uniform_region import in_uniform_region, uniform_region_loss
from tusk.model.network import Encoding, Network, standardise_map
from tusk.training.distributed import Ranks
from tusk.training.memory import DescriptorMemory
from tusk.training.patches import crop_patches

Reconstruction = Callable[[Tensor, Tensor], Tensor]

_AROUND = 1.5  # windows: what a keypoint looks like is a little more than the thing


@dataclass(frozen=True)
class Terms:
    """Every term of the network's loss, already weighted; one number each."""

    reconstruction: Tensor
    kmeans: Tensor
    score_equivariance: Tensor
    feature_equivariance: Tensor
    info_nce: Tensor
    mutual_information: Tensor
    quantisation: Tensor
    opacity: Tensor
    foreground: Tensor
    pseudo_labels: Tensor
    uniform_region: Tensor

    def total(self) -> Tensor:
        return torch.stack([getattr(self, field.name) for field in fields(self)]).sum()


@dataclass(frozen=True)
class StepKeypoints:
    """The keypoints of a step, for the prototypes."""

    descriptors: Tensor  # (2n, K, C)
    is_valid: Tensor  # (2n, K) bool: False for a keypoint that lies on the bare background and is of no type
    patches: Tensor | None  # uint8 (2n, K, 3, 16, 16), if asked for

    @staticmethod
    def joined(parts: Sequence[StepKeypoints]) -> StepKeypoints:
        """All keypoints of these in one row: descriptors (N, C), stands (N,), looks (N, 3, 16, 16); detached."""
        patches = [part.patches.flatten(0, 1) for part in parts if part.patches is not None]
        return StepKeypoints(
            torch.cat([part.descriptors.detach().flatten(0, 1) for part in parts]),
            torch.cat([part.is_valid.flatten() for part in parts]),
            torch.cat(patches) if patches else None,
        )


class Objective(nn.Module):
    """The network's loss, as a module: DistributedDataParallel wraps it and adds up the processes' gradients."""

    joint: Tensor  # (M, M)

    def __init__(
        self,
        network: Network,
        config: Config,
        reconstruction_loss: Reconstruction,
        ranks: Ranks,
        memory: DescriptorMemory,
    ) -> None:
        super().__init__()
        self.memory = memory
        self.network = network
        self.config = config
        self.ranks = ranks
        self._reconstruction_loss = reconstruction_loss
        network.descriptor_space.over_ranks = ranks.mean
        types = config.model.types
        # How types met in the last batches; all zeros before the first.
        self.register_buffer("joint", torch.zeros(types, types))

    def forward(self, images: Tensor, warp: Warp, progress: float) -> tuple[Terms, StepKeypoints]:
        """images (2n, 3, H, W): n first views, then their second views = warp(first).

        A term whose weight is 0 is not computed.
        """
        network, losses, training = self.network, self.config.losses, self.config.training
        pairs = len(images) // 2
        zero = images.new_zeros(())
        window = None if training.window is None else value_at(training.window, progress)
        encoding = network.encode(images, window=window)

        carried, quantisation = encoding.descriptors, zero
        if losses.prototypes.kind == "vector-quantisation" and progress >= training.warm_up:
            carried, quantisation = vector_quantisation(encoding.descriptors, network.prototypes.unit())
        variance = None if training.variance is None else value_at(training.variance, progress)
        shown = slice(pairs if losses.reconstruction.views == "first" else 2 * pairs)
        size = (images.shape[-2], images.shape[-1])
        decoded = network.decode(
            encoding.keypoints[shown], carried[shown], size, variance, encoding.thumbnail[shown], layers=False
        )
        explained_variance = self._reconstruction_loss(images[shown], decoded.reconstruction)
        reconstruction = value_at(losses.reconstruction.weight, progress) * explained_variance
        if losses.reconstruction.relative:
            reconstruction = reconstruction / self._variance(images)

        opacity = zero
        if decoded.cover is not None:
            clear, binarity = value_at(losses.opacity.weight, progress), value_at(losses.opacity.binarity, progress)
            if clear > 0 or binarity > 0:
                opacity = (decoded.cover * (clear + binarity * (1 - decoded.cover))).mean()

        foreground, is_valid = zero, encoding.keypoints.found  # (2n, K)
        # Where a second view was pieced together, things are cut through: what is left of them is of no type.
        is_valid = torch.cat([is_valid[:pairs], is_valid[pairs:] & _whole(network, encoding, warp, images.shape)])
        if (behind := network.background(images)) is not None:
            bare = background_residual(images, behind, network.config.stride)  # (2n, 1, h, w)
            is_valid = is_valid & ~on_background(bare, encoding.keypoints.xy)
            if (weight := value_at(losses.foreground.weight, progress)) > 0:
                blur = network.config.window_on_map(losses.foreground.window or network.config.window)
                foreground = weight * foreground_loss(encoding.score_map, bare, blur)

        places, flatness = network.to_image(encoding.keypoints.xy.detach()), zero  # (2n, K, 2)
        if (weight := value_at(losses.uniform_region.weight, progress)) > 0:
            uniform_region = in_uniform_region(images, places, network.config.window // 4 * 2 + 1)  # (2n, K)
            flatness = weight * uniform_region_loss(encoding.keypoints.score, uniform_region)
            is_valid = is_valid & ~uniform_region

        kmeans = pseudo_labels = zero
        running_mean = self.ranks.mean(is_valid.sum().to(images.dtype))  # how many keypoints a process has
        if bool(is_valid.any()):
            typed = encoding.descriptors[is_valid]  # (N, C)
            share = is_valid.sum() / running_mean  # so that the mean over processes is that over keypoints
            if (weight := value_at(losses.kmeans.weight, progress)) > 0:
                scale = value_at(losses.kmeans.scale, progress)
                kmeans = weight * share * kmeans_loss(network.prototypes.log_probability(typed, scale))
            if (weight := value_at(losses.pseudo_labels.weight, progress)) > 0 and self.memory.groups is not None:
                pseudo_labels = weight * share * self._pseudo_labels(typed)

        score_equivariance = feature_equivariance = zero
        masked = losses.equivariance.masked
        if (weight := value_at(losses.equivariance.score_weight, progress)) > 0:
            maps = encoding.score_map
            score_equivariance = weight * equivariance_loss(maps[:pairs], maps[pairs:], warp, masked=masked)
        if (weight := value_at(losses.equivariance.feature_weight, progress)) > 0:
            maps = _feature_form(encoding, losses)
            feature_equivariance = weight * equivariance_loss(maps[:pairs], maps[pairs:], warp, masked=masked)

        info_nce = information = zero
        contrast_weight = value_at(losses.info_nce.weight, progress)
        information_weight = value_at(losses.mutual_information.weight, progress)
        if contrast_weight > 0 or information_weight > 0:
            views = two_views(network, encoding, warp, images.shape, is_valid[pairs:])
        if contrast_weight > 0:
            usable = self.ranks.all_gather_with_grad(views.usable.to(images.dtype)) > 0.5
            first, second = (self.ranks.all_gather_with_grad(side)[usable] for side in (views.first, views.second))
            info_nce = contrast_weight * self._info_nce(first, second, progress)
        if information_weight > 0:
            settings = losses.mutual_information
            joint = self._joint(views)
            information = information_weight * mutual_information_loss(
                joint, settings.evenness, self._running_mean(joint)
            )
        moved = (score_equivariance, feature_equivariance)
        about_types = (info_nce, information, quantisation)
        terms = Terms(reconstruction, kmeans, *moved, *about_types, opacity, foreground, pseudo_labels, flatness)
        patches = None
        if training.reassign_by_appearance:
            patches = crop_patches(images, places, _AROUND * network.config.window)
        return terms, StepKeypoints(encoding.descriptors, is_valid, patches)

    def _pseudo_labels(self, descriptors: Tensor) -> Tensor:
        """descriptors (N, C): the cross-entropy of their types, told to be the groups of their nearest in memory."""
        prototypes = self.network.prototypes.unit().detach()
        wanted = self.memory.pseudo_labels(descriptors.detach(), len(prototypes))  # (N, M)
        return F.cross_entropy(descriptors @ prototypes.T / self.config.losses.pseudo_labels.temperature, wanted)

    def _info_nce(self, first: Tensor, second: Tensor, progress: float) -> Tensor:
        """first, second (N, C): the same keypoints in two views."""
        settings = self.config.losses.info_nce
        share = value_at(settings.neighbours, progress)
        loss = info_nce_loss(first, second, settings.temperature)
        if share == 0 or not len(self.memory):
            return loss
        pairs = ((self._alike(first), second), (self._alike(second), first))
        likes = torch.stack([info_nce_loss(like, own, settings.temperature) for like, own in pairs]).mean()
        return loss.lerp(likes, share)

    def _alike(self, descriptors: Tensor) -> Tensor:
        """(N, C) -> (N, C): the most similar descriptors in other images; this step's are not in the memory yet."""
        others = self.memory.latest()
        return others[(descriptors.detach() @ others.T).argmax(-1)]

    def _joint(self, views: TwoViews) -> Tensor:
        """How often types meet, (M, M): in two views of a keypoint, and in a keypoint and its like elsewhere."""
        settings = self.config.losses.mutual_information
        joint = joint_types(*views.types(self.network, settings.temperature), self.ranks.mean)
        if settings.neighbours == 0 or not len(self.memory):
            return joint
        nearest = TwoViews(
            torch.cat([views.first, views.second]),
            torch.cat([self._alike(views.first), self._alike(views.second)]),
            views.usable.repeat(2),
        )
        found = joint_types(*nearest.types(self.network, settings.temperature), self.ranks.mean)
        return joint.lerp(found, settings.neighbours)

    @torch.no_grad()
    def _variance(self, images: Tensor) -> Tensor:
        """Of the images (B, 3, H, W) of all processes, over pixels and images, the mean of the channels."""
        mean = self.ranks.mean(images.mean((0, 2, 3)))
        square = self.ranks.mean(images.square().mean((0, 2, 3)))
        return (square - mean.square()).mean().clamp_min(1e-4)

    @torch.no_grad()
    def _running_mean(self, joint: Tensor) -> Tensor:
        """The joint distribution of types over the last batches, this one included."""
        memory = self.config.losses.mutual_information.memory
        running_mean = self.joint.mul(memory).add(joint, alpha=1 - memory) if bool(self.joint.any()) else joint
        self.joint.copy_(running_mean)
        return running_mean


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


def _feature_form(encoding: Encoding, losses: LossesConfig) -> Tensor:
    """The feature map (2n, C, h, w) in the units in which its equivariance is measured."""
    if losses.equivariance.features == "unit":
        return unit_map(encoding.feature_map)
    if losses.equivariance.features == "standardised":
        return standardise_map(encoding.feature_map, encoding.statistics)
    return encoding.feature_map


@dataclass(frozen=True)
class TwoViews:
    """The second view's keypoints, and the places in the first that they come from."""

    first: Tensor  # (n*K, C) descriptors, unit length
    second: Tensor  # (n*K, C)
    usable: Tensor  # (n*K,) bool: False where the place lies outside the first view

    def types(self, network: Network, temperature: float) -> tuple[Tensor, Tensor]:
        """Probabilities of the types in both views, (N, M) each, of what is usable."""
        prototypes = network.prototypes.unit().detach()  # only the encoder learns from this
        first, second = (
            (side[self.usable] @ prototypes.T / temperature).softmax(-1) for side in (self.first, self.second)
        )
        return first, second


def _whole(network: Network, encoding: Encoding, warp: Warp, shape: torch.Size) -> Tensor:
    """(n, K) bool: which of the second views' keypoints have their own surroundings, half of a thing to each side."""
    places = network.to_image(encoding.keypoints.xy[len(encoding.feature_map) // 2 :])
    return warp.keeps(places, shape[-2], shape[-1], network.config.window / 4)


def two_views(
    network: Network, encoding: Encoding, warp: Warp, shape: torch.Size, is_valid: Tensor | None = None
) -> TwoViews:
    """seen: of n first views and their second views = warp(first), images of this shape.

    stands (n, K) bool: which of the second views' keypoints count; all that are found and whole, if not said.
    """
    pairs = len(encoding.feature_map) // 2
    height, width = shape[-2:]
    second_xy = encoding.keypoints.xy[pairs:].detach()  # (n, K, 2)
    image_xy = warp.source_points(network.to_image(second_xy), height, width)  # (n, K, 2) in the first view
    limit = image_xy.new_tensor([width - 1, height - 1])
    inside = ((image_xy >= 0) & (image_xy <= limit)).all(-1)  # (n, K)
    counts = encoding.keypoints.found[pairs:] & _whole(network, encoding, warp, shape) if is_valid is None else is_valid

    def read(feature_map: Tensor, xy: Tensor) -> Tensor:
        raw = sample_bilinear(feature_map, xy)  # (n, K, C)
        standardised = network.descriptor_space.space == "standardised"
        values = encoding.statistics.standardise(raw) if standardised else raw
        return F.normalize(values, dim=-1).flatten(0, 1)

    first = read(encoding.feature_map[:pairs], network.to_map(image_xy))
    return TwoViews(first, read(encoding.feature_map[pairs:], second_xy), (inside & counts).flatten())
