"""THE chain from images to detections: whoever shows, counts, scores or stores detections goes through it.

    encode -> peaks -> relocate -> gain (or explain away, then suppress) -> filter -> merge -> masks

`tusk detect` (predictor.py), `tusk evaluate`, the report, the threshold on gains (threshold.py) and the validation
figures of a training all call `detect_batch`, so that they speak of the same objects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tusk.detection.explain import explain_away
from tusk.detection.filter import keep_layers, lower_scores
from tusk.detection.gain import gains
from tusk.detection.masks import claim_pixels, label_map, pixel_shares
from tusk.detection.merge import merge_fragments
from tusk.detection.relocate import relocate_keypoints
from tusk.detection.settings import DetectionSettings
from tusk.errors import DataError
from tusk.model.network import Network, Output, eval_mode

Owned = Callable[[Tensor], Tensor]  # xy (B, K, 2) in image pixels -> (B, K) bool


@dataclass(frozen=True)
class BatchDetections:
    """What the chain gives for B images: K slots each, best score first; `kept` says which of them are detections."""

    xy: Tensor  # (B, K, 2) in image pixels
    score: Tensor  # (B, K)
    gain: Tensor  # (B, K), 0 where not found; NaN where it was not computed
    found: Tensor  # (B, K) bool: there is a keypoint in the slot
    kept: Tensor  # (B, K) bool: a detection: found, not below the least score and gain, no fragment of another
    full: Tensor  # (B,) bool: every slot was used, by an object or a fragment of one, so there may be more objects
    type: Tensor  # (B, K)
    probability: Tensor  # (B, K) of that type
    descriptors: Tensor  # (B, K, C)
    score_map: Tensor  # (B, 1, ceil(H/s), ceil(W/s))
    reconstruction: Tensor  # (B, 3, H, W), from all keypoints that were found
    layer_rgb: Tensor | None  # (B, K, 3, H, W), of all keypoints; None for a plain decoder, as are the next two
    layer_alpha: Tensor | None  # (B, K, 1, H, W), of all keypoints
    shares: Tensor | None  # (B, 1 + K, H, W): of the background and of each detection in every pixel
    size: Tensor | None = None  # (B, K): diameter in image pixels, where the network learns sizes

    def labels(self, *, background: bool = True) -> Tensor | None:
        """(B, H, W): 0 for the background, k + 1 for the detection in slot k; None for a plain decoder.

        With `background` False, the background only gets the pixels that no detection's layer reaches.
        """
        return None if self.shares is None else label_map(self.shares, background=background)

    def check_numbers(self) -> None:
        """Refuse what is no number where a keypoint is, or could be: it would pass for a picture without any."""
        numbers = torch.cat([self.xy, torch.stack([self.score, self.gain, self.probability], -1)], -1)  # (B, K, 5)
        if not bool(torch.isfinite(self.score_map).all() & torch.isfinite(numbers[self.found]).all()):
            why = "what it computes from a picture is not a number (NaN)"
            raise DataError("model", why, "its weights or settings are damaged: use another copy, or train again")


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
    with eval_mode(network):
        output: Output = network(
            images,
            settings.keypoints,
            settings.window,
            missing="empty",
            min_score=settings.min_score,
            views=settings.views,
        )
        output = relocate_keypoints(network, images, output, settings.relocate_keypoints, settings.window)
        # The network leaves away slots that no image uses: then there were more than enough.
        full = output.found & (output.found.shape[1] >= settings.keypoints)  # (B, K)
        elsewhere = torch.zeros_like(output.found)  # (B, K)
        if owned is not None and output.layer_alpha is None:
            elsewhere = ~owned(output.xy)
            output = replace(output, found=output.found & ~elsewhere)
        strong = output.score >= settings.min_score  # (B, K)
        if output.size is not None:
            # Which of many candidates are things is decided here, so keypoints have run out where candidates have.
            output, gain = explain_away(network, images, keep_layers(output, strong), settings.min_explained)
            kept = keep_layers(output, ~(gain < settings.min_gain))
            if settings.suppression is not None or settings.usual_size is not None:
                # After what explains nothing is left out: it would suppress what does.
                kept = lower_scores(kept, settings.usual_size, settings.suppression, settings.min_score)
        else:
            gain = torch.full_like(output.score, math.nan) if gain_is_unused else gains(network, images, output)
            strong = strong & ~(gain < settings.min_gain)
            kept = keep_layers(output, strong)
        claimed = claim_pixels(network, images, kept, settings.mask_tolerance)
        merged = merge_fragments(kept, claimed, settings.merge_fragments_above)
        shares = None if merged.layer_alpha is None else pixel_shares(merged.layer_alpha)
    return BatchDetections(
        xy=output.xy,
        score=kept.score,
        gain=gain,
        found=output.found,
        kept=merged.found,
        full=(full & _used(strong, elsewhere, output.score)).all(-1),
        type=output.label,
        probability=output.probability.amax(-1),
        descriptors=output.descriptors,
        score_map=output.score_map,
        reconstruction=output.reconstruction,
        layer_rgb=output.layer_rgb,
        layer_alpha=output.layer_alpha,
        shares=shares,
        size=output.size,
    )


def join_slots(parts: Sequence[Tensor]) -> Tensor:
    """(B, K, ...) of several batches in one, (N, K, ...), filled up with zeros: with sizes, slots that no image of a
    batch uses are left away, so that K is not the same in all."""
    most = max(part.shape[1] for part in parts)
    return torch.cat(
        [torch.cat([part, part.new_zeros(len(part), most - part.shape[1], *part.shape[2:])], 1) for part in parts]
    )


def _used(strong: Tensor, elsewhere: Tensor, score: Tensor) -> Tensor:
    """(B, K) bool: which slots hold an object. Gains of those that lie elsewhere were not computed; one that scores no
    lower than the weakest object here is taken for one."""
    here = torch.where(strong & ~elsewhere, score, math.inf)
    return torch.where(elsewhere, score >= here.amin(-1, keepdim=True), strong)
