"""Score map -> K locations: non-maximum suppression, top-K, soft-argmax."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config.model import most_peaks as most_peaks
from tusk.errors import UsageError
from tusk.geometry.blobs import suppress_by_size
from tusk.geometry.running import running_max
from tusk.geometry.sampling import sample_bilinear

LEAST_SCORE = 0.01  # of a thing: below it there is nothing, not even a weak one
CANDIDATES = 3  # times the keypoints asked for, before those that overlap a better one are left out
SPACING = 0.6  # radii of the larger one by which two sized keypoints are apart at least; things may overlap
AROUND = 5  # side of the window of the soft-argmax around a sized keypoint, in pixels of the map


@dataclass(frozen=True)
class Keypoints:
    """K places in each of B score maps, best first."""

    xy: Tensor  # (B, K, 2) in pixels of the score map, differentiable
    score: Tensor  # (B, K) the score map read at xy; 0 where not found
    found: Tensor  # (B, K) bool: False where the map has fewer than K peaks
    radius: Tensor | None = None  # (B, K) in pixels of the score map, where sizes are learnt

    def __getitem__(self, part: slice) -> Keypoints:
        """Those of a part of the images."""
        radius = None if self.radius is None else self.radius[part]
        return Keypoints(self.xy[part], self.score[part], self.found[part], radius)


def find_peaks(score_map: Tensor, window: int) -> Tensor:
    """(B, 1, H, W) -> (B, H*W) bool: the pixels that are the largest of the window around them.

    Of equal neighbours only the first counts, so that a uniform region is not a crowd of peaks.
    """
    reach = window // 2
    if reach == 0:
        return torch.ones_like(score_map, dtype=torch.bool).flatten(1)
    scores = score_map[:, 0]  # (B, H, W)
    height, width = scores.shape[-2:]
    padded = F.pad(scores, (reach, reach, reach, reach), value=-torch.inf)
    # What comes before a pixel, in the order of reading, has to be less; what comes after it may be equal.
    rows = running_max(running_max(padded, window, -1), reach, -2)  # (B, H + reach + 1, W)
    beside = running_max(padded[:, reach : reach + height], reach, -1)  # (B, H, W + reach + 1)
    before = torch.maximum(rows[:, :height], beside[..., :width])
    after = torch.maximum(rows[:, reach + 1 :], beside[..., reach + 1 :])
    return ((scores > before) & (scores >= after)).flatten(1)  # (B, H*W)


def extract_keypoints(
    score_map: Tensor, count: int, window: int, temperature: float, *, count_border: bool = False
) -> Keypoints:
    """The `count` highest peaks of each map, moved to the weighted mean of the window around them.

    score_map (B, 1, H, W); window is odd. With `count_border` the cells of a window that lie outside the map weigh
    as if the score there were 0 (the authors' form); without it they are left out.
    """
    height, width = score_map.shape[-2:]
    if count > most_peaks(height, width, window):
        raise UsageError(
            "model.keypoints",
            f"{count} keypoints do not fit in a score map of {width}x{height} with a window of {window}",
            f"ask for at most {most_peaks(height, width, window)}, or use larger images or a smaller window",
        )
    with torch.no_grad():
        flat = score_map.flatten(1)  # (B, H*W)
        value, index = torch.where(find_peaks(score_map, window), flat, -1.0).topk(count)  # (B, K) each
        found = value >= 0
    xy = soft_argmax(score_map, index, window, temperature, count_border=count_border)  # (B, K, 2)
    score = sample_bilinear(score_map, xy).squeeze(-1) * found  # (B, K)
    return Keypoints(xy=xy, score=score, found=found)


def extract_sized_keypoints(
    score_map: Tensor,
    radius_map: Tensor,
    count: int,
    window: int,
    temperature: float,
    least: float = LEAST_SCORE,
) -> Keypoints:
    """The `count` best things of each map: of two peaks closer than 0.6 radii only the better one.

    score_map, radius_map (B, 1, H, W). Things of several sizes may lie in one image: a small one beside a large one is
    kept where two large ones at that distance would be one and the same.
    """
    width = score_map.shape[-1]
    with torch.no_grad():
        flat = score_map.flatten(1)  # (B, H*W)
        candidates = min(CANDIDATES * count, flat.shape[1])
        value, index = torch.where(find_peaks(score_map, window), flat, -1.0).topk(candidates)  # (B, N) each
        places = torch.stack([index % width, index // width], -1).to(flat.dtype)  # (B, N, 2)
        radius = radius_map.flatten(1).gather(1, index)
        valid = value >= max(least, LEAST_SCORE)
        kept = suppress_by_size(places, radius, valid, SPACING)
        value, order = torch.where(kept, value, -1.0).topk(min(count, value.shape[1]))  # (B, K) each
        found = value >= 0
        index = index.gather(1, order)
    xy = soft_argmax(score_map, index, AROUND, temperature)  # (B, K, 2)
    score, read = sample_bilinear(torch.cat([score_map, radius_map], 1), xy).unbind(-1)  # (B, K) each
    return Keypoints(xy=xy, score=score * found, found=found, radius=read)


def soft_argmax(
    score_map: Tensor, index: Tensor, window: int, temperature: float, *, count_border: bool = False
) -> Tensor:
    """Peaks at index (B, K) = row * W + column -> (B, K, 2): the weighted means of the windows around them."""
    batch, _, height, width = score_map.shape
    count = index.shape[1]
    with torch.no_grad():
        row, column = index // width, index % width  # (B, K)
        reach = window // 2
        offset = torch.arange(-reach, reach + 1, device=score_map.device)
        rows = row[..., None] + offset  # (B, K, k)
        columns = column[..., None] + offset  # (B, K, k)
        row_inside = (rows >= 0) & (rows < height)
        column_inside = (columns >= 0) & (columns < width)
        inside = row_inside[..., :, None] & column_inside[..., None, :]  # (B, K, k, k)
        cells = rows.clamp(0, height - 1)[..., :, None] * width + columns.clamp(0, width - 1)[..., None, :]

    # Only the K windows are gathered; a dense k x k kernel over the map would do the same for every pixel.
    gathered = score_map.flatten(1).gather(1, cells.flatten(1)).view(batch, count, window, window)  # (B, K, k, k)
    outside = 0.0 if count_border else -torch.inf
    logits = torch.where(inside, gathered, outside) / temperature
    weight = logits.flatten(2).softmax(-1).view_as(logits)  # (B, K, k, k)
    x = (weight.sum(-2) * columns).sum(-1)  # (B, K)
    y = (weight.sum(-1) * rows).sum(-1)  # (B, K)
    return torch.stack([x, y], -1)  # (B, K, 2)
