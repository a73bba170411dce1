"""The detections of a sample of images, kept small: no maps or layers beyond the images that are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tusk.detection.limits import Limits, count_crowded, count_small
from tusk.detection.pipeline import BatchDetections, detect_batch, join_slots
from tusk.detection.settings import DetectionSettings
from tusk.losses.foreground import background_residual, on_background
from tusk.model.keypoints import most_peaks
from tusk.model.network import Network
from tusk.report.sample import Sample

_BATCH = 25  # images


@dataclass(frozen=True)
class Predictions:
    """The K slots of N images, and the maps of the first S of them; all on the CPU."""

    sample: Sample
    settings: DetectionSettings
    xy: Tensor  # (N, K, 2) in image pixels
    score: Tensor  # (N, K)
    gain: Tensor  # (N, K)
    found: Tensor  # (N, K) bool: which of them are detections, as `tusk detect` gives them
    descriptors: Tensor  # (N, K, C)
    label: Tensor  # (N, K) the type
    confidence: Tensor  # (N, K) probability of the type
    error: Tensor  # (N,) mean squared error of the reconstruction
    bare: Tensor | None  # (N, K) bool: keypoints, detections or not, where the background explains the image
    overlap: Tensor  # (N,) how much the layers share pixels; 0 for a plain decoder
    score_map: Tensor  # (S, H/s, W/s)
    reconstruction: Tensor  # (S, 3, H, W)
    mask: Tensor | None  # (S, H, W): 0 for the background, k + 1 for slot k; None for a plain decoder
    limits: Limits = field(default_factory=Limits)  # what the detections of all images ran into

    def counts(self, types: int) -> Tensor:
        """(M,): how many detections are of each type."""
        return torch.bincount(self.label[self.found], minlength=types)


@torch.no_grad()
def predict(network: Network, sample: Sample, shown: int, settings: DetectionSettings | None = None) -> Predictions:
    """Detect in every image; the network is left in the mode that it was in.

    Without settings: with the network's own keypoints and window, and nothing left out.
    """
    if settings is None:
        settings = DetectionSettings(network.config.keypoints, network.config.window).every_keypoint()
    points: dict[str, list[Tensor]] = {name: [] for name in ("xy", "score", "gain", "kept", "descriptors")}
    points |= {"type": [], "probability": []}
    errors, overlaps, score_maps, reconstructions, masks, bare = [], [], [], [], [], []
    limits = Limits()
    for start in range(0, len(sample), _BATCH):
        images = sample.images[start : start + _BATCH].to(network.device).float() / 255
        detections = detect_batch(network, images, settings)
        detections.check_numbers()
        for name, values in points.items():
            values.append(getattr(detections, name).cpu())
        errors.append((detections.reconstruction - images).square().mean((1, 2, 3)).cpu())
        overlaps.append(_overlap(detections.layer_alpha, len(images)))
        bare.append(_on_background(network, images, detections))
        wanted = max(0, shown - start)
        score_maps.append(detections.score_map[:wanted, 0].cpu())
        reconstructions.append(detections.reconstruction[:wanted].cpu())
        labels = None if (found := detections.labels()) is None else found.cpu()
        limits += _limits(network, detections, labels, settings)
        masks.append(None if labels is None else labels[:wanted])
    joined = {name: join_slots(values) for name, values in points.items()}
    return Predictions(
        sample=sample,
        settings=settings,
        xy=joined["xy"],
        score=joined["score"],
        gain=joined["gain"],
        found=joined["kept"],
        descriptors=joined["descriptors"],
        label=joined["type"],
        confidence=joined["probability"],
        error=torch.cat(errors),
        bare=_joined(bare, join_slots),
        overlap=torch.cat(overlaps),
        score_map=torch.cat(score_maps),
        reconstruction=torch.cat(reconstructions),
        mask=_joined(masks),
        limits=limits,
    )


def _limits(
    network: Network, detections: BatchDetections, labels: Tensor | None, settings: DetectionSettings
) -> Limits:
    """As `tusk detect` counts them, in pixels of the images."""
    config, total = network.config, Limits()
    height, width = detections.score_map.shape[-2:]
    room = most_peaks(height, width, config.window_on_map(settings.window))
    for image, kept in enumerate(detections.kept.cpu()):
        full = bool(detections.full[image]) and settings.keypoints < room
        areas = torch.zeros(0, dtype=torch.int64, device="cpu")
        if labels is not None:
            areas = torch.bincount(labels[image].flatten(), minlength=len(kept) + 1)[1:][kept]
        total += Limits(
            pictures=1,
            at_limit=int(full),
            limit=(settings.keypoints, settings.keypoints) if full else (0, 0),
            points=int(kept.sum()),
            crowded=count_crowded(detections.xy[image].cpu()[kept].double().numpy(), settings.window / 2),
            masks=int((areas > 0).sum()),
            small=count_small(areas.numpy(), config.stride),
            visible=2.0 * config.stride,
        )
    return total


def _joined(parts: list[Tensor | None], join: Callable[[list[Tensor]], Tensor] = torch.cat) -> Tensor | None:
    known = [part for part in parts if part is not None]
    return join(known) if known else None


def _on_background(network: Network, images: Tensor, detections: BatchDetections) -> Tensor | None:
    """(B, K) bool: which keypoints lie where the background explains the image; None where there is no background."""
    background = network.background(images)
    if background is None:
        return None
    residual = background_residual(images, background, network.config.stride)
    return (on_background(residual, network.to_map(detections.xy)) & detections.found).cpu()


def _overlap(alpha: Tensor | None, images: int) -> Tensor:
    """(B, K, 1, H, W) -> (B,): the mean over pixels of what the layers beside the strongest one have."""
    if alpha is None or alpha.shape[1] < 2:
        return torch.zeros(images, device="cpu")
    first, second = alpha[:, :, 0].topk(2, dim=1).values.unbind(1)  # (B, H, W) each
    return (first * second).mean((1, 2)).cpu()
