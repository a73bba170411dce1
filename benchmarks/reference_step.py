"""A training step as the authors organise it: dense tensors, and the encoder run again for every prototype step.

It shares the weights, the warps and the order of random numbers with `Trainer`, and nothing of its shortcuts.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.geometry.warp import sample_warp
from tusk.losses.equivariance import equivariance_loss
from tusk.losses.prototypes import sliced_wasserstein
from tusk.model.network import Network
from tusk.training.trainer import Trainer

KMEANS_WEIGHT, SCORE_WEIGHT, FEATURE_WEIGHT = 0.01, 0.01, 100.0  # the paper's


def reference_step(trainer: Trainer, originals: Tensor) -> dict[str, float]:
    """One step on network and prototypes; -> the paper's losses, under the names that `Trainer.train_step` reports."""
    network, training = trainer.network, trainer.config.training
    first = originals.float() / 255
    first = sample_warp(training.first_warp, len(first), trainer.generator).images(first)
    warp = sample_warp(training.second_warp, len(first), trainer.generator)
    images = torch.cat([first, warp.images(first)])
    pairs = len(first)

    features, score_map, xy, score, descriptors = encode(network, images)
    reconstructed = decode(network, xy, score, descriptors, images.shape[-2:])
    reconstruction = F.mse_loss(reconstructed, images)
    probability = assignment(descriptors, F.normalize(network.prototypes.weight.detach(), dim=-1))
    kmeans = KMEANS_WEIGHT * -probability.max(-1).values.log().mean()
    scores = SCORE_WEIGHT * equivariance_loss(score_map[:pairs], score_map[pairs:], warp)
    features_moved = FEATURE_WEIGHT * equivariance_loss(features[:pairs], features[pairs:], warp)
    trainer.network_optimiser.zero_grad()
    (reconstruction + kmeans + scores + features_moved).backward()
    trainer.network_optimiser.step()

    value = 0.0
    network.prototypes.requires_grad_(True)
    frozen = {name: parameter.detach().clone() for name, parameter in network.encoder.named_parameters()}
    for _ in range(training.prototype_steps):
        # Encoded anew each time. The losses of `Trainer` come from the descriptors before the network's own step, so
        # the comparison uses those; the time and memory of encoding again, forwards and backwards, are all here.
        _, _, _, _, again = encode(network, images)
        idle = (again * 0).sum()
        loss = idle + sliced_wasserstein(
            descriptors.detach().flatten(0, 1),
            F.normalize(network.prototypes.weight, dim=-1),
            generator=trainer.generator,
        )
        trainer.prototype_optimiser.zero_grad()
        network.encoder.zero_grad()
        loss.backward()
        trainer.prototype_optimiser.step()
        value = float(loss.detach())
    assert all(torch.equal(frozen[name], parameter) for name, parameter in network.encoder.named_parameters())
    terms = {
        "reconstruction": reconstruction,
        "kmeans": kmeans,
        "score_equivariance": scores,
        "feature_equivariance": features_moved,
    }
    return {name: float(term.detach()) for name, term in terms.items()} | {"prototypes": value}


def encode(network: Network, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Maps, locations (B, K, 2), scores (B, K) and descriptors (B, K, C), with dense k x k kernels."""
    features, score_map, _ = network.encoder(images)
    window, temperature = network.config.window, network.config.temperature
    height, width = score_map.shape[-2:]
    pad = window // 2
    peak = F.max_pool2d(score_map, window, 1, pad) == score_map
    index = (score_map * peak).flatten(1).topk(network.config.keypoints).indices  # (B, K)

    # The weighted mean over the window around every pixel of the map, by three dense convolutions.
    rows = torch.arange(height, dtype=score_map.dtype).view(1, 1, -1, 1)
    columns = torch.arange(width, dtype=score_map.dtype).view(1, 1, 1, -1)
    kernel = torch.ones(1, 1, window, window)
    weight = torch.exp(score_map / temperature)
    total = F.conv2d(weight, kernel, padding=pad)
    x = (F.conv2d(weight * columns, kernel, padding=pad) / total).flatten(1).gather(1, index)
    y = (F.conv2d(weight * rows, kernel, padding=pad) / total).flatten(1).gather(1, index)
    xy = torch.stack([x, y], -1)  # (B, K, 2)
    grid = (xy + 0.5) * 2 / torch.tensor([width, height]) - 1
    score = F.grid_sample(score_map, grid[:, None], padding_mode="border", align_corners=False)[:, 0, 0]  # (B, K)
    raw = F.grid_sample(features, grid[:, None], padding_mode="border", align_corners=False)[:, :, 0]  # (B, C, K)
    return features, score_map, xy, score, F.normalize(raw.transpose(1, 2), dim=-1)


def decode(network: Network, xy: Tensor, score: Tensor, descriptors: Tensor, size: torch.Size) -> Tensor:
    """The image reconstructed from the dense (B, K, C, H, W) maps."""
    height, width = size
    rows = torch.arange(height, dtype=xy.dtype).view(1, 1, -1, 1)
    columns = torch.arange(width, dtype=xy.dtype).view(1, 1, 1, -1)
    square = (columns - xy[..., 0, None, None]) ** 2 + (rows - xy[..., 1, None, None]) ** 2  # (B, K, H, W)
    gaussian = torch.exp(-square / (2 * network.config.variance))
    gaussian = gaussian / gaussian.sum((-2, -1), keepdim=True)
    maps = gaussian[:, :, None] * descriptors[..., None, None]  # (B, K, C, H, W)
    maps = maps * score[..., None, None, None]
    if network.config.decode == "plain":
        return torch.sigmoid(network.decoder.unet(maps.sum(1)))
    reconstructed = network.decoder.unet(maps.flatten(0, 1)).unflatten(0, maps.shape[:2])  # (B, K, 4, H, W)
    alpha = reconstructed[:, :, 3:].softmax(1)
    return (alpha * torch.sigmoid(reconstructed[:, :, :3])).sum(1)


def assignment(descriptors: Tensor, prototypes: Tensor) -> Tensor:
    """(B, K, C), (M, C) -> (B, K, M), by all differences."""
    distance = (descriptors[:, :, None] - prototypes).square().sum(-1).add(1e-12).sqrt()
    return (-distance).softmax(-1)
