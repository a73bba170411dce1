"""How many of the K keypoints are real, from their gains, without a label."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.detection.gain import gains
from tusk.detection.relocate import detect_keypoints
from tusk.model.network import Network

FloatArray = npt.NDArray[np.floating]

# What is worth less than this share of the strong ones' gain is worth nothing, however much less it is.
_NOTHING = 1e-3
# Two groups lie further apart than this, in deviations within them (Ashman's D). The best cut through an even spread
# without any gap has 3.46, through a normal distribution 2.65; of N values the former varies by 2.6 / sqrt(N), of which
# six times are left as a margin: few values have gaps by chance.
_ONE_GROUP, _MARGIN = 3.46, 16.0


_AT_ONCE = 8  # images


def least_gain(network: Network, images: Tensor) -> float:
    """images (N, 3, H, W), uint8, that things are found in -> `gain_threshold` of the network's keypoints in them."""
    training = network.training
    network.eval()
    device = next(network.parameters()).device
    gain = []
    for part in images.split(_AT_ONCE):
        seen = part.to(device, torch.float32) / 255
        gain.append(found_gains(network, seen))
    network.train(training)
    return gain_threshold(np.concatenate(gain))


def found_gains(network: Network, images: Tensor, keypoints: int | None = None) -> FloatArray:
    """images (B, 3, H, W) in [0, 1] -> (N,): the gain of every keypoint that is found in them."""
    output = detect_keypoints(network, images, keypoints)
    return gains(network, images, output)[output.found].cpu().numpy()


def gain_threshold(gains: FloatArray) -> float:
    """gains, of any shape, of many images -> the least gain of a keypoint that stands for something.

    Where some keypoints are unused, the logarithms of gains have two heaps; Otsu's cut lies between them (1979). In one
    heap it would still cut somewhere, so it is used only where what it parts lies far apart; otherwise all keypoints
    count, and the threshold is minus infinity.
    """
    values = np.asarray(gains, np.float64).ravel()
    values = values[np.isfinite(values)]
    strong = float(np.quantile(values, 0.99)) if len(values) else 0.0
    if strong <= 0:
        return -np.inf
    logs = np.sort(np.log(np.maximum(values, _NOTHING * strong)))
    if logs[0] == logs[-1]:
        return -np.inf
    # Every cut between two neighbours at once: share and mean of what lies below it.
    number = len(logs)
    below = np.arange(1, number) / number
    sums = np.cumsum(logs)
    mean_below = sums[:-1] / np.arange(1, number)
    mean_above = (sums[-1] - sums[:-1]) / np.arange(number - 1, 0, -1)
    between = below * (1 - below) * (mean_above - mean_below) ** 2
    between[logs[1:] == logs[:-1]] = 0  # a cut cannot part equals
    best = int(between.argmax())
    within = np.sqrt((logs[: best + 1].var() + logs[best + 1 :].var()) / 2)
    if mean_above[best] - mean_below[best] <= (_ONE_GROUP + _MARGIN / np.sqrt(number)) * within:
        return -np.inf
    return float(np.exp((logs[best] + logs[best + 1]) / 2))
