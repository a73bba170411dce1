"""Keypoints moved to where the reconstruction error is largest.

The K best-scored peaks are not always on the K best objects: in a crowd one may stay without a peak of its own, while a
weak peak on another's corner is taken. The reconstruction shows it: an object without a keypoint is missing there. So
where the error is largest, the places around it are tried out, and the one that lowers the error most takes the slot of
the keypoint with the least gain. No weight changes, and no label is used.
"""

from __future__ import annotations

from dataclasses import fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.detection.filter import keep_layers
from tusk.detection.gain import LEAST_BEHIND, error_map, gains
from tusk.geometry.sampling import sample_bilinear
from tusk.model.background import make_thumbnail
from tusk.model.keypoints import Keypoints
from tusk.model.network import Network, Output

_PLACES = 24  # that are tried out for one keypoint, every second one of the feature map
_LEAST_GAIN = 0.5  # of a new keypoint, in pixels that were wholly wrong
_TIMES_GAIN = 2.0  # the new keypoint's gain over that of the one whose slot it takes
_FREE = 0.5  # share of what it covers that was background: what mends a highlight or an edge is no new object
_MISSED = 0.5  # share of the needed gain that must be wrong within one window: a layer reaches further than that


@torch.no_grad()
def relocate_keypoints(network: Network, images: Tensor, output: Output, most: int, window: int) -> Output:
    """images (B, 3, H, W) in [0, 1] -> the output with up to `most` of the K keypoints of each image put elsewhere.

    window: the side of an object in image pixels.
    """
    if most == 0:
        return output
    gain = gains(network, images, output)  # (B, K)
    parts = []
    for one in range(len(images)):
        part = slice(one, one + 1)
        parts.append(_relocate_in(network, images[part], _of(output, part), gain[part], most, window))
    joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in _names(output)}
    return Output(**joined)


def _of(output: Output, part: slice) -> Output:
    return Output(**{name: getattr(output, name)[part] for name in _names(output)})


def _names(output: Output) -> list[str]:
    """The fields that there are: the networks that this is for learn no sizes."""
    return [field.name for field in fields(Output) if getattr(output, field.name) is not None]


def _relocate_in(network: Network, image: Tensor, first: Output, gain: Tensor, most: int, window: int) -> Output:
    """One image (1, 3, H, W), and the gains of its keypoints (1, K)."""
    output = first
    for _ in range(most):
        better = _relocate_one(network, image, output, gain, window)
        if better is None:
            break
        output = better
        gain = gains(network, image, output)
    return output if output is first else _best_first(output)


def _relocate_one(network: Network, image: Tensor, output: Output, gain: Tensor, window: int) -> Output | None:
    """The output with its least useful keypoint where it is most useful; None where that changes little."""
    assert output.layer_rgb is not None and output.layer_alpha is not None
    background = network.background(image)
    assert background is not None
    slot = int(gain[0].argmin())
    needed = max(_LEAST_GAIN, _TIMES_GAIN * float(gain[0, slot]))
    wrong = error_map(output.reconstruction, image)  # (1, H, W)
    around = F.avg_pool2d(wrong, window, 1, window // 2) * window**2  # (1, H, W): within one window
    if float(around.max()) < _MISSED * needed:
        return None

    xy = _worst_places(around, network.config.stride)  # (1, N, 2) in pixels of the feature map
    descriptors = network.read_descriptors(output.feature_map, xy)  # (1, N, C)
    score = sample_bilinear(output.score_map, xy)[..., 0]  # (1, N)
    rgb, weight = _alone(network, image, xy, score, descriptors)  # (N, 3, H, W), (N, 1, H, W)

    others = torch.arange(gain.shape[1], device=gain.device) != slot
    left = keep_layers(output, others[None]).layer_alpha
    assert left is not None
    behind = (1 - left.sum(1)).clamp_min(LEAST_BEHIND)  # (1, 1, H, W)
    without = (left * output.layer_rgb).sum(1) + behind * background  # (1, 3, H, W)
    share = behind * weight / (1 + behind * weight)  # (N, 1, H, W): the softmax with one more layer
    tried = (1 - share) * without + share * rgb  # (N, 3, H, W)
    gained = (error_map(without, image) - error_map(tried, image)).sum((-2, -1))  # (N,)
    free = (share * behind).sum((1, 2, 3)) / share.sum((1, 2, 3)).clamp_min(LEAST_BEHIND)  # (N,)
    gained = torch.where(free >= _FREE, gained, -torch.inf)
    best = int(gained.argmax())
    if float(gained[best]) < needed:
        return None

    def put(values: Tensor, value: Tensor) -> Tensor:
        """values (1, K, ...) with the slot's replaced."""
        values = values.clone()
        values[0, slot] = value
        return values

    probability = network.prototypes(descriptors[:, best : best + 1])[0, 0]  # (M,)
    return replace(
        output,
        xy=put(output.xy, network.to_image(xy[0, best])),
        score=put(output.score, score[0, best]),
        found=put(output.found, torch.ones_like(output.found[0, 0])),
        descriptors=put(output.descriptors, descriptors[0, best]),
        probability=put(output.probability, probability),
        label=put(output.label, probability.argmax()),
        reconstruction=tried[best : best + 1],
        layer_rgb=put(output.layer_rgb, rgb[best]),
        layer_alpha=put(left * (1 - share[best]), share[best]),
    )


def _worst_places(around: Tensor, stride: int) -> Tensor:
    """around (1, H, W): the error near a pixel -> (1, N, 2): the worst places, in pixels of the feature map."""
    coarse = F.avg_pool2d(around, stride, ceil_mode=True)[0, ::2, ::2]
    order = coarse.flatten().topk(min(_PLACES, coarse.numel())).indices
    return torch.stack([order % coarse.shape[1], order // coarse.shape[1]], -1)[None].float() * 2


def _alone(network: Network, image: Tensor, xy: Tensor, score: Tensor, descriptors: Tensor) -> tuple[Tensor, Tensor]:
    """The layer of each of N places (1, N, 2) alone, (N, 3, H, W), and its weight as a multiple of the background's."""
    number = xy.shape[1]
    points = Keypoints(xy[0, :, None], score[0, :, None], torch.ones_like(score[0, :, None], dtype=torch.bool))
    size = (image.shape[-2], image.shape[-1])
    thumbnail = make_thumbnail(image).expand(number, -1, -1, -1)
    decoded = network.decode(points, descriptors[0, :, None], size, thumbnail=thumbnail)
    assert decoded.layer_rgb is not None and decoded.layer_alpha is not None
    alpha = decoded.layer_alpha[:, 0]
    return decoded.layer_rgb[:, 0], alpha / (1 - alpha).clamp_min(LEAST_BEHIND)


def _best_first(output: Output) -> Output:
    """One image's keypoints in the order of their scores again."""
    order = output.score[0].argsort(descending=True, stable=True)
    whole = {"feature_map", "score_map", "reconstruction"}
    names = [name for name in _names(output) if name not in whole]
    return replace(output, **{name: getattr(output, name)[:, order] for name in names})
