"""How many of the K keypoints are objects, from their gains, without a label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tusk.detection.pipeline import detect_batch
from tusk.detection.settings import DetectionSettings
from tusk.model.keypoints import most_peaks
from tusk.model.network import Network

FloatArray = npt.NDArray[np.floating]

# Gains below this share of the largest ones count as equal, however much smaller they are.
_NOTHING = 1e-3
# Two groups lie further apart than this, in standard deviations within them (Ashman's D). The best cut through a
# uniform distribution has 3.46, through a normal distribution 2.65; of N values the former varies by 2.6 / sqrt(N), of
# which six times are left as a margin: few values have gaps by chance.
_ONE_GROUP, _MARGIN = 3.46, 16.0
# Keypoints without an object gain far less than those with one. Two groups that are nearer to each other are two kinds
# of objects: bright and dark ones, or large and small ones.
_TIMES = 10.0
# With a background, keypoints may stay unused. So many times K are detected, so that some are without an object even if
# every image holds K of them; and so that the threshold also serves whoever asks for more than K.
_SPARE = 2
_BATCH = 8  # images


def least_gain(network: Network, images: Tensor, settings: DetectionSettings) -> float:
    """images (N, 3, H, W), uint8, that objects are found in -> `gain_threshold` of the keypoints in them."""
    device = network.device
    every, gain = settings.every_keypoint(), []
    if (config := network.config).background != "none":
        height, width = (-(-side // config.stride) for side in images.shape[-2:])
        room = most_peaks(height, width, config.window_on_map(settings.window))
        every = replace(every, keypoints=min(_SPARE * settings.keypoints, room))
    for part in images.split(_BATCH):
        detections = detect_batch(network, part.to(device, torch.float32) / 255, every)
        gain.append(detections.gain[detections.found].cpu().numpy())
    return gain_threshold(np.concatenate(gain))


def gain_threshold(gains: FloatArray) -> float:
    """gains, of any shape, of many images -> the least gain of a keypoint that is an object.

    Where some keypoints are unused, the logarithms of gains have two modes; Otsu's threshold lies between them (1979).
    In one mode it would still cut somewhere, so it is used only where what it parts lies far apart; otherwise all
    keypoints count, and the threshold is minus infinity.
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
    apart = mean_above[best] - mean_below[best]
    if apart <= (_ONE_GROUP + _MARGIN / np.sqrt(number)) * within or apart < np.log(_TIMES):
        return -np.inf
    return float(np.exp((logs[best] + logs[best + 1]) / 2))
