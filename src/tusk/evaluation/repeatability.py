"""Repeatability: whether the points of a picture are found again when the picture is warped (Schmid et al., 2000).

A point that marks something moves with it. One that lies where it does by chance, or at a fixed place of the frame,
does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from tusk.config import WarpConfig
from tusk.detection.pipeline import detect_batch
from tusk.detection.settings import DetectionSettings
from tusk.geometry.warp import sample_warp
from tusk.model.network import Network

FloatArray = npt.NDArray[np.floating]

# One warp for all models, so that figures can be compared: turns, zooms, shifts and bends as a second photograph might.
WARP = WarpConfig(scale=0.95, scale_jitter=0.1, tps=0.05, shift=0.02, rotation=0.2, translate=0.05, border="reflect")
_TOLERANCE = 0.03  # of the longer side: further off it is another point
_MARGIN = 0.04  # of the longer side: nearer to the edge, a thing may be cut off in one of the views
_BATCH = 20  # images


@dataclass(frozen=True)
class RepeatabilityFigures:
    rate: float  # share of the points that are found again, corrected for chance: 1 all, 0 no more than random ones
    error: float  # median distance of those, as a share of the picture's side; NaN where there are none
    points: int  # that lie well inside both views


@torch.no_grad()
def repeatability(
    network: Network, images: Tensor, xy: Tensor, found: Tensor, settings: DetectionSettings, seed: int = 0
) -> RepeatabilityFigures:
    """images (N, 3, H, W), uint8; xy (N, K, 2) and found (N, K): what was detected in them.

    Points are matched one to one with those of the warped picture, taken back. There every keypoint counts, whatever
    its gain: to compute those takes long, and the question is how far a point moves.
    """
    height, width = images.shape[-2:]
    generator = torch.Generator().manual_seed(seed)
    matched = by_chance = points = 0
    apart: list[float] = []
    side = max(height, width)
    for start in range(0, len(images), _BATCH):
        part = slice(start, start + _BATCH)
        view = images[part].to(network.device).float() / 255
        warp = sample_warp(WARP, len(view), generator, view.device)
        again = detect_batch(network, warp.images(view), settings.every_keypoint(), skip_unused_gain=True)
        back = warp.source_points(again.xy, height, width).cpu()  # (B, K, 2)
        moved = warp.points(xy[part].to(view.device), height, width).cpu()
        usable = found[part] & _well_inside(moved, height, width)
        anywhere = torch.rand(back.shape, generator=generator, device="cpu") * back.new_tensor([width, height])
        for own, counts, other, chance, there in zip(xy[part], usable, back, anywhere, again.found.cpu(), strict=True):
            here = own[counts].numpy()
            near = match_distances(here, other[there].numpy(), _TOLERANCE * side)
            apart += near
            points, matched = points + len(here), matched + len(near)
            by_chance += len(match_distances(here, chance[there].numpy(), _TOLERANCE * side))
    rate, usual = matched / max(1, points), by_chance / max(1, points)
    corrected = (rate - usual) / (1 - usual) if usual < 1 else 0.0
    error = float(np.median(apart)) / side if apart else float("nan")
    return RepeatabilityFigures(max(0.0, corrected), error, points)


def match_distances(first: FloatArray, second: FloatArray, tolerance: float) -> list[float]:
    """Points (P, 2) and (Q, 2) matched one to one, as many as lie within the tolerance: how far apart each pair is."""
    apart = np.linalg.norm(first[:, None] - second[None], axis=-1)  # (P, Q)
    # A pair more outweighs any distance within the tolerance.
    value = np.where(apart <= tolerance, 2 - apart / tolerance, 0)
    rows, columns = linear_sum_assignment(value, maximize=True)
    return [float(distance) for distance in apart[rows, columns] if distance <= tolerance]


def _well_inside(xy: Tensor, height: int, width: int) -> Tensor:
    """xy (B, K, 2) in a view -> (B, K) bool."""
    margin = _MARGIN * max(height, width)
    limit = xy.new_tensor([width - 1 - margin, height - 1 - margin])
    return ((xy >= margin) & (xy <= limit)).all(-1)
