"""What is not background, after flat-field correction."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.data.flat_field import THRESHOLD


@torch.no_grad()
def flat_foreground(image: Tensor, background: Tensor | float, stride: int = 1) -> Tensor:
    """image (B, 3, H, W) after flat-field correction, and its background -> (B, 1, H/s, W/s) in [0, 1).

    Near 0 on the background, 1/2 where the difference is at the threshold that all corrected pictures share.
    """
    error = (image - background).square().mean(1, keepdim=True)
    foreground = error / (error + THRESHOLD**2)
    return F.avg_pool2d(foreground, stride, ceil_mode=True) if stride > 1 else foreground
