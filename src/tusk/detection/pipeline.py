"""THE chain from images to detections: whoever shows, counts, scores or stores detections goes through it.

    encode -> peaks -> relocate -> gain -> filter -> merge -> masks

`tusk detect` (predictor.py), `tusk evaluate`, the report, the threshold on gains (threshold.py) and the validation
figures of a training all call `detect_batch`, so that they speak of the same objects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tusk.detection.filter import keep_layers
from tusk.detection.gain import gains
from tusk.detection.masks import claim_pixels, label_map, pixel_shares
from tusk.detection.merge import merge_fragments
from tusk.detection.relocate import relocate_keypoints
from tusk.detection.settings import DetectionSettings
from tusk.model.network import Network, Output

Owned = Callable[[Tensor], Tensor]  # xy (B, K, 2) in image pixels -> (B, K) bool


@dataclass(frozen=True)
class BatchDetections:
    """What the chain gives for B images: K slots each, best score first; `kept` says which of them are detections."""

    xy: Tensor  # (B, K, 2) in image pixels
    score: Tensor  # (B, K)
    gain: Tensor  # (B, K), 0 where not found; NaN where it was not computed
    found: Tensor  # (B, K) bool: there is a keypoint in the slot
    kept: Tensor  # (B, K) bool: a detection: found, not below the least score and gain, no fragment of another
    type: Tensor  # (B, K)
    probability: Tensor  # (B, K) of that type
    descriptors: Tensor  # (B, K, C)
    score_map: Tensor  # (B, 1, ceil(H/s), ceil(W/s))
    reconstruction: Tensor  # (B, 3, H, W), from all keypoints that were found
    layer_rgb: Tensor | None  # (B, K, 3, H, W), of all keypoints; None for a plain decoder, as are the next two
    layer_alpha: Tensor | None  # (B, K, 1, H, W), of all keypoints
    shares: Tensor | None  # (B, 1 + K, H, W): of the background and of each detection in every pixel

    def labels(self, *, background: bool = True) -> Tensor | None:
        """(B, H, W): 0 for the background, k + 1 for the detection in slot k; None for a plain decoder.

        With `background` False, the background only gets the pixels that no detection's layer reaches.
        """
        return None if self.shares is None else label_map(self.shares, background=background)


@torch.no_grad()
def detect_batch(
    network: Network,
    images: Tensor,
    settings: DetectionSettings,
    owned: Owned | None = None,
    *,
    skip_unused_gain: bool = False,
) -> BatchDetections:
    """images (B, 3, H, W) in [0, 1], on the network's device.

    owned: which places a tile answers for. Without layers, keypoints elsewhere are left out before their gains, which
    take long, are computed; masks need all layers. skip_unused_gain: no gains where nothing is left out for its gain.
    """
    gain_is_unused = skip_unused_gain and settings.min_gain == -math.inf
    with _eval_mode(network):
        output: Output = network(images, settings.keypoints, settings.window, missing="empty")
        output = relocate_keypoints(network, images, output, settings.relocate_keypoints, settings.window)
        if owned is not None and output.layer_alpha is None:
            output = replace(output, found=output.found & owned(output.xy))
        gain = torch.full_like(output.score, math.nan) if gain_is_unused else gains(network, images, output)  # (B, K)
        kept = keep_layers(output, (output.score >= settings.min_score) & ~(gain < settings.min_gain))
        claimed = claim_pixels(network, images, kept, settings.mask_tolerance)
        merged = merge_fragments(kept, claimed, settings.merge_fragments_above)
        shares = None if merged.layer_alpha is None else pixel_shares(merged.layer_alpha)
    return BatchDetections(
        xy=output.xy,
        score=output.score,
        gain=gain,
        found=output.found,
        kept=merged.found,
        type=output.label,
        probability=output.probability.amax(-1),
        descriptors=output.descriptors,
        score_map=output.score_map,
        reconstruction=output.reconstruction,
        layer_rgb=output.layer_rgb,
        layer_alpha=output.layer_alpha,
        shares=shares,
    )


@contextmanager
def _eval_mode(network: Network) -> Iterator[None]:
    """The network is left in the mode that it was in."""
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)
