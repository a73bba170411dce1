"""Layers -> one label for each pixel: whose paint is it?"""

from __future__ import annotations

import torch
from torch import Tensor

from tusk.model.decoder import Decoded
from tusk.model.network import Output


def label_map(output: Output | Decoded) -> Tensor:
    """(B, H, W): 0 for the background, k + 1 for keypoint k: whichever has the largest share in the pixel.

    What the layers leave of a pixel's 1 is the background's share: its colour's where the network has learnt one, and
    all of it where no window reaches. Without either, every pixel goes to a layer, as in the paper.
    """
    if output.layer_alpha is None:
        raise ValueError("a label map needs layers, and this network paints without them")
    alpha = output.layer_alpha[:, :, 0]  # (B, K, H, W)
    behind = 1 - alpha.sum(1, keepdim=True)  # (B, 1, H, W)
    return torch.cat([behind, alpha], 1).argmax(1)
