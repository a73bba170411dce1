"""Images with the things of others laid into them: scenes that are fuller than those at hand."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.losses.foreground import unexplained

_THING = 0.5  # what differs from the background by more than the image's mean difference is a thing


@torch.no_grad()
def crowded(images: Tensor, others: Tensor, behind_others: Tensor) -> Tensor:
    """images, others (B, 3, H, W), the others' backgrounds (B or 1, 3, H, W) -> the images with the others' things.

    A thing is what the background does not explain, at the place where it is: near things stay large. Shadows, which
    differ less, stay behind.
    """
    thing = (unexplained(others, behind_others, 1) > _THING).to(images.dtype)  # (B, 1, H, W)
    # Single pixels are noise: closed and opened over 3 x 3.
    thing = -F.max_pool2d(-F.max_pool2d(thing, 3, 1, 1), 3, 1, 1)
    thing = F.max_pool2d(-F.max_pool2d(-thing, 3, 1, 1), 3, 1, 1)
    return torch.where(thing > 0, others, images)
