"""The gains of a plain decoder's keypoints, of which several are left out at once.

Leaving a keypoint out changes the decoder's image around it, and a little everywhere: every GroupNorm of the U-Net has
a mean and a variance over the whole map, and they change too. With those statistics held fixed the change is local, so
that keypoints far from each other can be left out together, each with the changes that are nearest to it. What the
statistics do is added to first order: the derivative of the error by each of them, from one backward pass, times what
the keypoint does to it. A slow and exact way is in `gain.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.model.keypoints import Keypoints
from tusk.model.network import Network
from tusk.model.unet import ApplyNorm, apply_norm

APART = 16.0  # pixels of the feature map that keypoints lie apart which are left out together
_PIXELS_AT_ONCE = 1 << 17  # that are decoded together
_HALFWAY = 0.5  # where between nothing and the mean keypoint's change the derivative is taken


@dataclass(frozen=True)
class OneImage:
    """An image, and the keypoints that are decoded to it."""

    wanted: Tensor  # (1, 3, H, W) in [0, 1]
    points: Keypoints  # of a batch of 1, in pixels of the feature map
    descriptors: Tensor  # (1, K, C)

    def decode(self, network: Network, apply: ApplyNorm, score: Tensor | None = None) -> Tensor:
        """With these scores (n, K), or its own -> (n, 3, H, W)."""
        points, descriptors = self.points, self.descriptors
        if score is not None:
            count = len(score)
            points = Keypoints(points.xy.expand(count, -1, -1), score, points.found.expand(count, -1))
            descriptors = descriptors.expand(count, -1, -1)
        return network.decode_sum(points, descriptors, (self.wanted.shape[-2], self.wanted.shape[-1]), apply)


@dataclass(frozen=True)
class _Known:
    """A GroupNorm while the whole image is decoded."""

    x: Tensor  # (1, C, h, w): what it is given, the mean taken off
    mean: Tensor  # (C,), of the channel's group
    rstd: Tensor  # (C,): 1 / standard deviation


def local_gains(network: Network, image: OneImage, groups: list[list[int]]) -> Tensor:
    """groups: keypoints that are left out together -> (K,), 0 where a keypoint is in no group."""
    whole, norms = _decode_whole(network, image)
    gain = torch.zeros_like(image.points.score[0])  # (K,)
    changes = {norm: gain.new_zeros(len(gain), 2, norm.num_groups) for norm in norms}
    at_once = max(1, _PIXELS_AT_ONCE // (whole.shape[-2] * whole.shape[-1]))
    for start in range(0, len(groups), at_once):
        _leave_out(network, image, whole, norms, groups[start : start + at_once], gain, changes)
    for norm, slope in _slopes(network, image, changes).items():
        gain += (changes[norm] * slope).sum((1, 2))
    return gain


def groups_apart(xy: Tensor, found: Tensor, apart: float = APART) -> list[list[int]]:
    """Keypoints (K, 2) in pixels of the feature map, those found (K,) -> groups, no two of one closer than `apart`.

    Greedy colouring, those first that have the most others around them.
    """
    near = (xy[:, None] - xy).square().sum(-1) < apart**2  # (K, K)
    near = near & found
    order = near.sum(1).argsort(descending=True, stable=True)
    close = near.tolist()
    groups: list[list[int]] = []
    for slot in order[found[order]].tolist():
        free = next((group for group in groups if not any(close[slot][other] for other in group)), None)
        if free is None:
            groups.append([slot])
        else:
            free.append(slot)
    return groups


def _decode_whole(network: Network, image: OneImage) -> tuple[Tensor, dict[nn.GroupNorm, _Known]]:
    """-> (1, 3, H, W), and what its norms were given."""
    norms: dict[nn.GroupNorm, _Known] = {}

    def keep(norm: nn.Module, x: Tensor) -> Tensor:
        if not isinstance(norm, nn.GroupNorm):
            return apply_norm(norm, x)
        each = x.shape[1] // norm.num_groups
        sizes = (1, x.shape[1], x.shape[2] * x.shape[3], norm.num_groups)
        y, mean, rstd = torch.native_group_norm(x, norm.weight, norm.bias, *sizes, norm.eps)
        mean, rstd = (value[0].repeat_interleave(each) for value in (mean, rstd))  # (C,) each
        norms[norm] = _Known(x.sub_(mean[:, None, None]), mean, rstd)
        return y

    return image.decode(network, keep), norms


def _leave_out(
    network: Network,
    image: OneImage,
    whole: Tensor,
    norms: dict[nn.GroupNorm, _Known],
    groups: list[list[int]],
    gain: Tensor,
    changes: dict[nn.GroupNorm, Tensor],
) -> None:
    """Put the local gains of the groups' keypoints into gain (K,), and what they do to the norms into `changes`."""
    nearest = _Nearest(image.points.xy[0], groups)
    width = max(known.x.shape[3] for known in norms.values())  # of the feature map

    def hold(norm: nn.Module, x: Tensor) -> Tensor:
        if not isinstance(norm, nn.GroupNorm):
            return apply_norm(norm, x)
        known = norms[norm]
        x.sub_(known.mean[:, None, None])
        step, each = width / x.shape[3], x.shape[1] // norm.num_groups
        pixels = each * x.shape[2] * x.shape[3]
        change = x - known.x
        sums = nearest.sums(change, step)  # (N, C) for the N keypoints of all groups
        squares = nearest.sums(change.mul_(x + known.x), step)
        mean = sums.unflatten(1, (-1, each)).sum(2) / pixels * known.rstd[::each]  # (N, G), in standard deviations
        variance = squares.unflatten(1, (-1, each)).sum(2) / pixels * known.rstd[::each].square() - mean.square()
        changes[norm][nearest.slots] = torch.stack([-variance / 2, -mean], 1)
        return torch.addcmul(norm.bias[:, None, None], x, (known.rstd * norm.weight)[:, None, None])

    # Score and descriptor are multiplied into the map: with a score of 0 nothing is added there.
    score = image.points.score.repeat(len(groups), 1)  # (n, K)
    score[nearest.rows, nearest.slots] = 0.0
    without = image.decode(network, hold, score)
    worse = (without - image.wanted).square().mean(1, keepdim=True) - (whole - image.wanted).square().mean(1)
    gain[nearest.slots] = nearest.sums(worse, 1 / network.config.stride)[:, 0]


class _Nearest:
    """Sums over the pixels that are nearest to each of the keypoints that are left out together."""

    def __init__(self, xy: Tensor, groups: list[list[int]]) -> None:
        """xy (K, 2) in pixels of the feature map."""
        several = range(max(map(len, groups)))
        places = [[group[place] if place < len(group) else -1 for place in several] for group in groups]
        slots = torch.tensor(places, device=xy.device)  # (n, R), -1 for none
        self.valid = slots >= 0
        self.slots = slots[self.valid]  # (N,)
        self.rows = self.valid.nonzero()[:, 0]  # (N,): the group of each
        self.xy = xy[slots]  # (n, R, 2)
        self.known: dict[tuple[int, int], Tensor] = {}

    def sums(self, values: Tensor, step: float) -> Tensor:
        """values (n or 1, C, h, w), a pixel of which is `step` pixels of the feature map wide -> (N, C)."""
        size = (values.shape[2], values.shape[3])
        if size not in self.known:
            self.known[size] = self._regions(*size, step)
        # Of maps whose channels come last this is a view.
        pixels = values.movedim(1, -1).flatten(1, 2)  # (n or 1, h*w, C)
        return (self.known[size] @ pixels)[self.valid]

    def _regions(self, height: int, width: int, step: float) -> Tensor:
        """(n, R, h*w): 1 for the nearest keypoint of a pixel, 0 for the others."""
        x = (torch.arange(width, device=self.xy.device) + 0.5) * step - 0.5  # (w,)
        y = (torch.arange(height, device=self.xy.device) + 0.5) * step - 0.5
        across = (x - self.xy[..., :1]).square()  # (n, R, w)
        down = (y - self.xy[..., 1:]).square().masked_fill(~self.valid[..., None], torch.inf)  # (n, R, h)
        distance = (down[..., None] + across[..., None, :]).flatten(2)  # (n, R, h*w)
        return (distance == distance.amin(1, keepdim=True)).to(self.xy.dtype)


def _slopes(network: Network, image: OneImage, changes: dict[nn.GroupNorm, Tensor]) -> dict[nn.GroupNorm, Tensor]:
    """The derivative of the error by what is changed at each norm, (2, G), the statistics of later norms following;
    halfway to what the mean keypoint does, as the error is not linear in it."""
    number = image.points.found.sum().clamp_min(1)
    halfway = {norm: _HALFWAY * change.sum(0) / number for norm, change in changes.items()}  # (2, G)
    seen: list[tuple[nn.GroupNorm, Tensor]] = []

    def shift(norm: nn.Module, x: Tensor) -> Tensor:
        if not isinstance(norm, nn.GroupNorm):
            return apply_norm(norm, x)
        if not x.requires_grad:  # the first, where the weights need no gradients
            x = x.requires_grad_()
        scale, add = halfway[norm].repeat_interleave(x.shape[1] // norm.num_groups, 1)  # (C,) each
        weight, bias = norm.weight.detach(), norm.bias.detach()
        y = F.group_norm(x, norm.num_groups, weight * (1 + scale), bias + weight * add, norm.eps)
        seen.append((norm, y))
        return y

    with torch.inference_mode(False), torch.enable_grad():
        error = (image.decode(network, shift) - image.wanted).square().mean(1).sum()
        slopes = torch.autograd.grad(error, [y for _, y in seen])
    found = {}
    for (norm, y), slope in zip(seen, slopes, strict=True):
        scale, add = halfway[norm]  # (G,)
        # ReLU has overwritten y = weight * ((1 + scale) * x' + add) + bias: where it is 0, nothing goes on.
        y, each = y.detach()[0], y.shape[1] // norm.num_groups
        total = (slope[0] * (y > 0)).sum((1, 2))  # (C,)
        by_add = (total * norm.weight).view(-1, each).sum(1)  # (G,)
        product = ((slope[0] * y).sum((1, 2)) - total * norm.bias).view(-1, each).sum(1)
        found[norm] = torch.stack([(product - by_add * add) / (1 + scale), by_add]).detach()
    return found
