"""Keypoints that are left out: their layers' shares go to the other layers and the background."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tusk.detection.suppress import lowered_scores, scores_by_size
from tusk.model.network import Output


def keep_layers(output: Output, kept: Tensor) -> Output:
    """The output as if the keypoints that are not kept (B, K) had not been found.

    A keypoint without an object still has a faint layer. Its shares go to the other layers and the background, as the
    softmax would have given them; the reconstruction stays as it was.
    """
    if output.layer_alpha is None:
        return replace(output, found=output.found & kept)
    left = output.layer_alpha * kept[:, :, None, None, None]  # (B, K, 1, H, W)
    behind = (1 - output.layer_alpha.sum(1, keepdim=True)).clamp_min(0)
    share = (left.sum(1, keepdim=True) + behind).clamp_min(torch.finfo(left.dtype).tiny)
    return replace(output, found=output.found & kept, layer_alpha=left / share)


def lower_scores(output: Output, usual_size: float | None, reach: tuple[float, float] | None, least: float) -> Output:
    """The output with scores lowered where things are small, and by better keypoints nearby, and without those that
    fall below `least`."""
    assert output.size is not None
    score = torch.zeros_like(output.score)  # (B, K)
    for place in range(len(score)):
        slots = output.found[place].nonzero()[:, 0]  # (N,)
        own = (values[place, slots].double().cpu().numpy() for values in (output.xy, output.size, output.score))
        xy, size, found = own
        lowered = lowered_scores(xy, size / 2, scores_by_size(found, size, usual_size), reach, least)
        score[place, slots] = torch.from_numpy(lowered).to(score)
    return replace(keep_layers(output, (score >= least) & (score > 0)), score=score)
