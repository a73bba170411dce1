"""Layers -> one label for each pixel: whose paint is it?"""

from __future__ import annotations

import torch
from torch import Tensor

from tusk.model.decoder import Decoded
from tusk.model.network import Output


def label_map(output: Output | Decoded, *, background: bool = True) -> Tensor:
    """(B, H, W): 0 for the background, k + 1 for keypoint k: whichever has the largest share in the pixel.

    What the layers leave of a pixel's 1 is the background's share: its colour's where the network has learnt one, and
    all of it where no window reaches. Without either, every pixel goes to a layer, as in the paper. With `background`
    False the background only gets what no layer reaches: whose would the pixel be, if it is a thing's?
    """
    if output.layer_alpha is None:
        raise ValueError("a label map needs layers, and this network paints without them")
    alpha = output.layer_alpha[:, :, 0]  # (B, K, H, W)
    behind = 1 - alpha.sum(1, keepdim=True)  # (B, 1, H, W)
    if not background:
        behind = torch.where(alpha.sum(1, keepdim=True) > 0, -1.0, 1.0)
    return torch.cat([behind, alpha], 1).argmax(1)
