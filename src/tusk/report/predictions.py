"""What a network says about a sample of images, kept small: no maps or layers beyond the pictures that are shown."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tusk.detection.relocate import detect_keypoints
from tusk.losses.foreground import background_residual, on_background
from tusk.model.network import Network, Output
from tusk.report.sample import Sample

_PART = 25  # images at a time


@dataclass(frozen=True)
class Predictions:
    """Keypoints of N images, and the maps of the first S of them."""

    sample: Sample
    xy: Tensor  # (N, K, 2) in image pixels
    score: Tensor  # (N, K)
    found: Tensor  # (N, K) bool
    descriptors: Tensor  # (N, K, C)
    label: Tensor  # (N, K)
    confidence: Tensor  # (N, K) probability of the label
    error: Tensor  # (N,) mean squared error of the reconstruction
    bare: Tensor | None  # (N, K) bool: which lie where the background explains the image; None where it has none
    overlap: Tensor  # (N,) how much the layers share pixels; 0 for a plain decoder
    score_map: Tensor  # (S, H/s, W/s)
    reconstruction: Tensor  # (S, 3, H, W)

    def counts(self, types: int) -> Tensor:
        """(M,): how many keypoints are of each type."""
        return torch.bincount(self.label[self.found], minlength=types)


@torch.no_grad()
def predict(network: Network, sample: Sample, shown: int) -> Predictions:
    """Look at every image; the network is left in the mode that it was in."""
    was_training = network.training
    network.eval()
    parts: list[Output] = []
    errors, overlaps, score_maps, paintings, bare = [], [], [], [], []
    for start in range(0, len(sample), _PART):
        images = sample.images[start : start + _PART].float() / 255
        output = detect_keypoints(network, images)
        errors.append((output.reconstruction - images).square().mean((1, 2, 3)))
        if (behind := network.background(images)) is not None:
            left = background_residual(images, behind, network.config.stride)
            bare.append(on_background(left, network.to_map(output.xy)) & output.found)
        overlaps.append(_overlap(output.layer_alpha, len(images)))
        wanted = max(0, shown - start)
        score_maps.append(output.score_map[:wanted, 0])
        paintings.append(output.reconstruction[:wanted])
        parts.append(_points_only(output))
    network.train(was_training)
    probability = torch.cat([part.probability for part in parts])  # (N, K, M)
    confidence, label = probability.max(-1)
    return Predictions(
        sample=sample,
        xy=torch.cat([part.xy for part in parts]),
        score=torch.cat([part.score for part in parts]),
        found=torch.cat([part.found for part in parts]),
        descriptors=torch.cat([part.descriptors for part in parts]),
        label=label,
        confidence=confidence,
        error=torch.cat(errors),
        bare=torch.cat(bare) if bare else None,
        overlap=torch.cat(overlaps),
        score_map=torch.cat(score_maps),
        reconstruction=torch.cat(paintings),
    )


def _overlap(alpha: Tensor | None, images: int) -> Tensor:
    """(B, K, 1, H, W) -> (B,): the mean over pixels of what the layers beside the strongest one have."""
    if alpha is None or alpha.shape[1] < 2:
        return torch.zeros(images)
    first, second = alpha[:, :, 0].topk(2, dim=1).values.unbind(1)  # (B, H, W) each
    return (first * second).mean((1, 2))


def _points_only(output: Output) -> Output:
    """Without the maps: two hundred images' layers would fill the memory."""
    nothing = output.score[:0]
    return Output(
        feature_map=nothing,
        score_map=nothing,
        xy=output.xy,
        score=output.score,
        found=output.found,
        descriptors=output.descriptors,
        probability=output.probability,
        label=output.label,
        reconstruction=nothing,
        layer_rgb=None,
        layer_alpha=None,
    )
