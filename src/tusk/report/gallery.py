"""Each type by itself: the decoding of its prototype, and the keypoints that are surest to be of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tusk.model.keypoints import Keypoints
from tusk.model.network import Network, eval_mode
from tusk.report.draw import UInt8Array, crop, to_bytes
from tusk.report.named import PageTypes
from tusk.report.predictions import Predictions

_MOST_TYPES = 120
_MOST_CROPS = 8
_PICTURES = 600  # on the whole page
_PART = 16  # types that are decoded at a time


@dataclass(frozen=True)
class TypeCard:
    """One type."""

    number: int
    count: int
    share: float  # of all keypoints
    alone: UInt8Array  # (side, side, 3)
    crops: tuple[UInt8Array, ...]  # surest first


def crop_side(predictions: Predictions, window: int) -> int:
    """Pixels around a keypoint that show the thing: the network's window and a margin."""
    height, width = predictions.sample.images.shape[-2:]
    return int(min(height, width, max(24, round(1.5 * window))))


def type_cards(network: Network, predictions: Predictions, types: PageTypes) -> list[TypeCard]:
    """The types that are most in use, in the order of their numbers."""
    counts = predictions.counts(types.count)
    most = [number for number in counts.argsort(descending=True, stable=True).tolist() if number in types.shown]
    shown = sorted(most[:_MOST_TYPES])
    side = crop_side(predictions, network.config.window)
    score = float(predictions.score[predictions.found].median()) if bool(predictions.found.any()) else 0.5
    whole = min(predictions.sample.images.shape[-2:])
    alone = decode_alone(network, types.centres[shown], score, side, whole)
    per_type = max(3, min(_MOST_CROPS, _PICTURES // max(1, len(shown))))
    total = max(1, int(counts.sum()))
    return [
        TypeCard(
            number,
            int(counts[number]),
            int(counts[number]) / total,
            picture,
            _crops(predictions, number, side, per_type),
        )
        for number, picture in zip(shown, alone, strict=True)
    ]


def _crops(predictions: Predictions, number: int, side: int, most: int) -> tuple[UInt8Array, ...]:
    own = (predictions.label == number) & predictions.found
    sureness = torch.where(own, predictions.confidence, -1.0).flatten()
    surest = sureness.argsort(descending=True, stable=True)[: min(most, int(own.sum()))]
    crops = []
    for place in surest.tolist():
        image, point = divmod(place, predictions.label.shape[1])
        x, y = predictions.xy[image, point].tolist()
        crops.append(crop(np.ascontiguousarray(predictions.sample.images[image].permute(1, 2, 0).numpy()), x, y, side))
    return tuple(crops)


@torch.no_grad()
def decode_alone(network: Network, centres: Tensor, score: float, side: int, whole: int) -> list[UInt8Array]:
    """What the decoder makes of a keypoint with each of the centres (n, C) in the middle of an empty image of `whole`
    pixels a side; the middle of it."""
    config = network.config
    step = config.multiple
    # A layer is decoded by itself on a whole image, as in training. The plain decoder is used to K keypoints in an
    # image, and its norms to what they fill of it: alone, a keypoint gets that share of the room.
    room = whole / (1 if config.decode == "layers" else config.keypoints**0.5)
    canvas = -(-max(side, round(room)) // step) * step
    centre = canvas / 2 - 0.5
    pictures: list[UInt8Array] = []
    for part in centres.to(network.device).split(_PART):
        xy = network.to_map(torch.full((len(part), 1, 2), centre, device=network.device))
        ones = torch.ones(xy.shape[:2], device=xy.device)
        radius = None if config.sizes is None else ones * side / 3 / config.stride  # the thing fills most of the crop
        points = Keypoints(xy, ones * score, ones > 0, radius)
        with eval_mode(network):
            decoded = network.decode(points, part[:, None], (canvas, canvas)).reconstruction
        pictures += [crop(to_bytes(picture.cpu().numpy()), centre, centre, side) for picture in decoded]
    return pictures
