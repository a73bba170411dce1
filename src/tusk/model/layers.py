"""Layers -> one label for each pixel: whose paint is it?"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tusk.model.decoder import Decoded
from tusk.model.network import Network, Output

_FAR = 4.0  # tolerances: a highlight fits no layer, and no layer should win it for being a little less wrong
_BRIGHTNESS = 0.1  # what a difference in brightness counts, squared: a thing is lit and shaded, but keeps its hue
_ROUNDS = 2  # of recolouring; more change nothing
_DOUBT = 5.0  # pixels: a layer that has few of its own is not recoloured by them


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


@torch.no_grad()
def claim_pixels(network: Network, images: Tensor, output: Output) -> Output:
    """The output with shares that say whose each pixel of the images (B, 3, H, W) is, by Bayes' rule.

    A layer is painted from one descriptor, and reaches over the edge of a thing that stands before its own. The share
    that it was painted with is what is expected of a pixel; the pixel's own colour then tells which of those who share
    it painted it. A descriptor also misses the exact colour of its thing, so each layer is recoloured by the mean of
    what it is off in the pixels that are its own. The picture painted stays as it was, and so does everything if
    `mask_tolerance` is None.
    """
    tolerance = network.config.mask_tolerance
    if tolerance is None or output.layer_alpha is None or output.layer_rgb is None:
        return output
    pixels = images[:, None]  # (B, 1, 3, H, W)

    def far(colour: Tensor) -> Tensor:
        """(B, N, 3, H, W) -> (B, N, 1, H, W): how far it is from the pixel's colour, in squared tolerances."""
        off = colour - pixels
        bright = off.mean(2, keepdim=True)
        apart = ((off - bright).square() + _BRIGHTNESS * bright.square()).sum(2, keepdim=True)
        return (apart / tolerance**2).clamp_max(_FAR**2)

    alpha, rgb = output.layer_alpha, output.layer_rgb
    behind = torch.zeros_like(alpha[:, :1])
    if (background := network.background(images)) is not None:
        behind = (1 - alpha.sum(1, keepdim=True)).clamp_min(0) * (-far(background[:, None]) / 2).exp()

    def claims(away: Tensor) -> Tensor:
        claimed = alpha * (-away / 2).exp()  # (B, K, 1, H, W)
        every = claimed.sum(1, keepdim=True) + behind
        return claimed / every.clamp_min(torch.finfo(every.dtype).tiny)

    away = far(rgb)
    for _ in range(_ROUNDS):
        own = claims(away) * (away < _FAR**2)
        off = (own * (pixels - rgb)).sum((-2, -1), keepdim=True) / (own.sum((-2, -1), keepdim=True) + _DOUBT)
        away = far(rgb + off)  # off (B, K, 3, 1, 1)
    return replace(output, layer_alpha=claims(away))
