"""The layers of a few images: what each keypoint decodes to, where, and which pixels are its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from tusk.detection.draw import type_colours
from tusk.detection.pipeline import detect_batch
from tusk.detection.settings import DetectionSettings
from tusk.model.network import Network
from tusk.report.draw import UInt8Array, to_bytes
from tusk.report.predictions import Predictions
from tusk.report.sample import Sample

_IMAGES = 4
_MOST_LAYERS = 12
_BEHIND = (24, 26, 31)
_SHADES = (1.0, 0.68, 0.84, 0.52)


@dataclass(frozen=True)
class Layer:
    """What one keypoint decodes to."""

    label: int
    picture: UInt8Array  # (H, W, 4): its colours, as opaque as they are in the image
    alpha: UInt8Array  # (H, W, 3), grey
    share: float  # of the pixels that are its own


@dataclass(frozen=True)
class LayeredImage:
    """One image taken apart."""

    image: UInt8Array
    reconstruction: UInt8Array
    mask: UInt8Array  # (H, W, 3): each pixel in the colour of its layer's type
    true_mask: UInt8Array | None
    layers: tuple[Layer, ...]


def contact(mask: UInt8Array) -> int:
    """How many neighbouring pixels belong to two different things."""
    beside = (mask[:, 1:] != mask[:, :-1]) & (mask[:, 1:] > 0) & (mask[:, :-1] > 0)
    below = (mask[1:] != mask[:-1]) & (mask[1:] > 0) & (mask[:-1] > 0)
    return int(beside.sum() + below.sum())


@torch.no_grad()
def take_apart(network: Network, predictions: Predictions) -> list[LayeredImage]:
    """The images whose things touch or overlap most; nothing for a plain decoder."""
    if network.config.decode != "layers":
        return []
    sample = predictions.sample
    masks = [truth.mask for truth in sample.truths if truth.mask is not None]
    meeting = predictions.overlap.numpy()
    if len(masks) == len(sample):
        meeting = np.array([contact(mask) for mask in masks])
    chosen = np.argsort(-meeting, kind="stable")[:_IMAGES]
    return [_apart(network, sample, int(index), predictions.settings) for index in chosen]


def _apart(network: Network, sample: Sample, index: int, settings: DetectionSettings) -> LayeredImage:
    image = sample.images[index : index + 1].to(network.device).float() / 255
    found = detect_batch(network, image, settings)
    own = found.labels()
    assert found.layer_rgb is not None and found.layer_alpha is not None and own is not None
    rgb, alpha, labels = found.layer_rgb[0].cpu(), found.layer_alpha[0].cpu(), found.type[0].tolist()
    owner = own[0].cpu().numpy()  # (H, W): 0 the background, else 1 + the layer
    colours = np.array([_BEHIND, *_layer_colours(labels, network.config.types)], np.uint8)
    layers = []
    for number in range(min(_MOST_LAYERS, len(labels))):
        colour, cover = to_bytes(rgb[number].numpy()), to_bytes(alpha[number].expand(3, -1, -1).numpy())
        picture = np.concatenate([colour, cover[..., :1]], -1)
        layers.append(Layer(labels[number], picture, cover, float((owner == number + 1).mean())))
    truth = sample.truths[index] if sample.truths else None
    return LayeredImage(
        image=np.ascontiguousarray(sample.images[index].permute(1, 2, 0).numpy()),
        reconstruction=to_bytes(found.reconstruction[0].cpu().numpy()),
        mask=colours[owner],
        true_mask=None if truth is None or truth.mask is None else _drawn(truth.mask),
        layers=tuple(layers),
    )


def _layer_colours(labels: list[int], types: int) -> list[tuple[int, ...]]:
    """That of the type; a further layer of the same type is darker, so that the two differ."""
    colours = type_colours(types)
    shades = [_SHADES[labels[:number].count(label) % len(_SHADES)] for number, label in enumerate(labels)]
    return [tuple(round(shade * part) for part in colours[label]) for label, shade in zip(labels, shades, strict=True)]


def _drawn(mask: UInt8Array) -> UInt8Array:
    """Things in greys: their colours would be taken for types."""
    things = int(mask.max())
    shades = np.linspace(250, 130, max(things, 1)).astype(np.uint8)
    table = np.concatenate([np.array([_BEHIND], np.uint8), np.repeat(shades[:, None], 3, 1)])
    return table[mask]
