"""The gain of a keypoint: by how much the reconstruction error grows without it."""

from __future__ import annotations

import torch
from torch import Tensor

from tusk.detection.local_gain import OneImage, groups_apart, local_gains
from tusk.model.keypoints import Keypoints
from tusk.model.network import Network, Output

# Pixels that are decoded at once: with the narrow networks of use that is about 100 MB, whatever K is.
_PIXELS_AT_ONCE = 1 << 18
# Fewer keypoints are left out one by one, which is exact: each of many changes the statistics of the decoder's norms
# little enough for `local_gain.py`. That costs as much as decoding the groups and so many times more.
_FEW = 16
_MORE = 6
# A background's share is only known as what the layers leave of 1, and that no finer than this.
LEAST_BEHIND = 1e-6


@torch.no_grad()
def gains(network: Network, images: Tensor, output: Output) -> Tensor:
    """images (B, 3, H, W) in [0, 1] and the network's output for them -> (B, K), 0 where no keypoint was found.

    The unit is squared error, the mean over channels, summed over pixels: about the number of pixels that go from
    right to wholly wrong when the keypoint is left out. It does not depend on how much image lies around an object, so
    one threshold serves all sizes. It is negative where the reconstruction is better without the keypoint.
    """
    if output.layer_alpha is None:
        return _by_decoding(network, images, output)
    return _by_compositing(network, images, output)


def _by_decoding(network: Network, images: Tensor, output: Output) -> Tensor:
    """Plain decoding. In which way is decided for each image alone, so that it does not depend on the others."""
    xy = network.to_map(output.xy)  # (B, K, 2)
    gain = torch.zeros_like(output.score)  # (B, K)
    exact = output.found.clone()  # (B, K)
    for one in range(len(images)):
        number = int(output.found[one].sum())
        if number < _FEW or not _differentiable(network):
            continue
        groups = groups_apart(xy[one], output.found[one])
        if number < _MORE + len(groups):
            continue
        part = slice(one, one + 1)
        points = Keypoints(xy[part], output.score[part], output.found[part])
        gain[one] = local_gains(network, OneImage(images[part], points, output.descriptors[part]), groups)
        exact[one] = False
    return exact_gains(network, images, output, exact, gain)


def _differentiable(network: Network) -> bool:
    """Weights that were made in inference mode take part in no derivative."""
    return not any(weight.is_inference() for weight in network.decoder.parameters())


def exact_gains(
    network: Network, images: Tensor, output: Output, wanted: Tensor, others: Tensor | None = None
) -> Tensor:
    """Once more for each keypoint that is wanted (B, K), without its Gaussian; `others`: the gains of the rest."""
    size = (images.shape[-2], images.shape[-1])
    xy = network.to_map(output.xy)  # (B, K, 2)
    whole = _error(output.reconstruction, images)  # (B,)
    gain = torch.zeros_like(output.score) if others is None else others.clone()  # (B, K)
    pairs = wanted.nonzero()  # (N, 2): image, keypoint
    for part in pairs.split(max(1, _PIXELS_AT_ONCE // (size[0] * size[1]))):
        image, keypoint = part.unbind(1)
        # Score and descriptor are multiplied into the map: with a score of 0 nothing is added there.
        score = output.score[image].scatter(1, keypoint[:, None], 0.0)  # (n, K)
        points = Keypoints(xy[image], score, output.found[image])
        without = network.decode(points, output.descriptors[image], size).reconstruction  # (n, 3, H, W)
        gain[image, keypoint] = _error(without, images[image]) - whole[image]
    return gain


def _by_compositing(network: Network, images: Tensor, output: Output) -> Tensor:
    """Layers: the others are composited again, each pixel's shares brought back to a sum of 1."""
    assert output.layer_rgb is not None and output.layer_alpha is not None
    alpha = output.layer_alpha  # (B, K, 1, H, W)
    coloured = torch.cat([alpha * output.layer_rgb, alpha], 2)  # (B, K, 4, H, W): colour and share of each layer
    # Sums over all layers but one from both sides: the sum of all minus the one would lose small shares to rounding.
    nothing = torch.zeros_like(coloured[:, :1])
    before = torch.cat([nothing, coloured[:, :-1].cumsum(1)], 1)  # (B, K, 4, H, W)
    after = torch.cat([coloured[:, 1:].flip(1).cumsum(1).flip(1), nothing], 1)
    left = before + after
    colour, share = left[:, :, :3], left[:, :, 3:]
    background = network.background(images)  # (B, 3, H, W)
    if background is not None:
        behind = (1 - alpha.sum(1, keepdim=True)).clamp_min(LEAST_BEHIND)  # (B, 1, 1, H, W)
        colour = colour + behind * background[:, None]
        share = share + behind
    # What no layer covers any more is black, as it is in the decoder.
    without = torch.where(share > 0, colour / share.clamp_min(torch.finfo(share.dtype).tiny), 0.0)
    worse = _error(without, images[:, None]) - _error(output.reconstruction, images)[:, None]  # (B, K)
    return torch.where(output.found, worse, 0.0)


def error_map(reconstruction: Tensor, images: Tensor) -> Tensor:
    """(..., 3, H, W) each -> (..., H, W): squared error, mean over channels."""
    return (reconstruction - images).square().mean(-3)


def _error(reconstruction: Tensor, images: Tensor) -> Tensor:
    """The same, summed over pixels: (...)."""
    return error_map(reconstruction, images).sum((-2, -1))
