"""Layers -> one label for each pixel: whose paint is it?"""

from __future__ import annotations

from dataclasses import replace

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


def keep_layers(output: Output, kept: Tensor) -> Output:
    """The output as if the keypoints that are not kept (B, K) had not been found.

    A keypoint without a thing still has some shade of a layer. Its shares go to the other layers and the background, as
    the softmax would have given them; the picture painted stays as it was.
    """
    if output.layer_alpha is None:
        return replace(output, found=output.found & kept)
    left = output.layer_alpha * kept[:, :, None, None, None]  # (B, K, 1, H, W)
    behind = (1 - output.layer_alpha.sum(1, keepdim=True)).clamp_min(0)
    share = (left.sum(1, keepdim=True) + behind).clamp_min(torch.finfo(left.dtype).tiny)
    return replace(output, found=output.found & kept, layer_alpha=left / share)
