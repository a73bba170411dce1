"""Keypoints that are left out: their layers' shares go to the other layers and the background."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

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
