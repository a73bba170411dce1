"""Keypoints -> image again: one sum of all (plain), or one RGBA layer for each keypoint (layers)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.model.background import Kind, make_background
from tusk.model.compressed import decode_layers
from tusk.model.keypoints import Keypoints
from tusk.model.splat import splat_each, splat_sum
from tusk.model.unet import ApplyNorm, UNet

Mode = Literal["plain", "layers"]
_LARGEST = 30.0  # logit of alpha: beyond it a layer is opaque in single precision


@dataclass(frozen=True)
class Decoded:
    """The decoder's image, in pixels of the input image; layers only in layer mode."""

    reconstruction: Tensor  # (B, 3, H, W) in [0, 1]
    layer_rgb: Tensor | None = None  # (B, K, 3, H, W) in [0, 1]
    layer_alpha: Tensor | None = None  # (B, K, 1, H, W), summing to 1 over K and the background
    cover: Tensor | None = None  # (B, 1, H, W): the sum of alpha over K

    def crop(self, height: int, width: int) -> Decoded:
        """The top-left part of all of it."""

        def part(value: Tensor | None) -> Tensor | None:
            return None if value is None else value[..., :height, :width]

        return Decoded(
            self.reconstruction[..., :height, :width], part(self.layer_rgb), part(self.layer_alpha), part(self.cover)
        )


@dataclass(frozen=True)
class _Windows:
    """Layers decoded in windows, and the pixels of the image that they cover. N = B*K."""

    patch: Tensor  # (N, 4, cells): logits of RGB and alpha
    index: Tensor  # (N, 1, cells): row * W + column, clamped to the image
    valid: Tensor  # (N, 1, cells) bool: False outside the image, and for keypoints that were not found


class Decoder(nn.Module):
    """(locations, scores, descriptors) -> image, by a U-Net on the splatted keypoints.

    With a stride s it runs at 1/s of the size and unfolds s x s pixels from the channels of its last layer.
    With a window (in image pixels) a layer is only decoded in the window around its keypoint; alpha is 0 elsewhere,
    so that the cost grows with the objects' area and not with K times the image.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        levels: int,
        stride: int,
        mode: Mode = "plain",
        window: int | None = None,
        background: Kind = "none",
        *,
        tint: bool = False,
    ) -> None:
        super().__init__()
        self.stride = stride
        self.mode = mode
        self.window = window
        self.unet = UNet(channels, (3 if mode == "plain" else 4) * stride**2, width, levels)
        self.background = make_background(background)
        self.tint = nn.Linear(channels, 3, bias=False) if tint else None

    @torch.no_grad()
    def start_at(self, colour: Tensor) -> None:
        """Let an untrained decoder give this RGB colour (3,) in [0, 1]."""
        logit = torch.logit(colour.clamp(0.01, 0.99))
        assert self.unet.last.bias is not None
        outputs = self.unet.last.bias.view(-1, self.stride**2)  # the channels that unfold to R, G, B and alpha
        outputs[:3] = logit[:, None]
        if self.background is not None:
            self.background.start_at(logit)

    def forward(
        self,
        points: Keypoints,
        descriptors: Tensor,
        size: tuple[int, int],
        variance: float,
        thumbnail: Tensor | None = None,
        *,
        layers: bool = True,
    ) -> Decoded:
        """points in feature-map pixels, descriptors (B, K, C), size (H, W) of the feature map.

        thumbnail (B, 3, 4, 4): of the images, for a background whose light follows them. Without `layers` the single
        layers are not given where that saves time. A keypoint that was not found adds nothing: its score is 0 in the
        sum, its alpha is 0 in layers.
        """
        xy, score = points.xy, points.score
        if self.mode == "plain":
            splat = splat_sum(xy, score, descriptors, *size, variance)  # (B, C, H/s, W/s)
            return Decoded(self._unfolded(self.unet(splat)))
        whole = (size[0] * self.stride, size[1] * self.stride)
        inside = None if bool(points.found.all()) else points.found[:, :, None, None, None]  # (B, K, 1, 1, 1)
        if self.window is None or self.window // self.stride >= max(size):
            logits = decode_layers(self.unet, xy, score, descriptors, size, variance)  # (B*K, 4*s*s, H/s, W/s)
            logits = F.pixel_shuffle(logits, self.stride)  # (B*K, 4, H, W)
            logits = self._tinted(logits, descriptors).unflatten(0, xy.shape[:2])  # (B, K, 4, H, W)
        else:
            windows = self._decode_windows(points, descriptors, whole, variance)
            if not layers:
                return self._blend_windows(windows, len(xy), whole, thumbnail)
            logits, inside = _on_canvases(windows, len(xy), whole)
        return self._blend(torch.sigmoid(logits[:, :, :3]), logits[:, :, 3:], inside, thumbnail)

    def decode_sum(
        self, points: Keypoints, descriptors: Tensor, size: tuple[int, int], variance: float, apply: ApplyNorm
    ) -> Tensor:
        """A plain decoder's image, (B, 3, H, W), with its norms applied in another way."""
        splat = splat_sum(points.xy, points.score, descriptors, *size, variance)  # (B, C, H/s, W/s)
        if not torch.is_grad_enabled():  # a quarter faster on processors, and a little less precise
            splat = splat.contiguous(memory_format=torch.channels_last)
        # Not called but run: what was compiled for training is for the norms as they are.
        return self._unfolded(self.unet.forward(splat, apply))

    def _unfolded(self, x: Tensor) -> Tensor:
        """(B, 3*s*s, H/s, W/s) -> (B, 3, H, W) in [0, 1]."""
        return torch.sigmoid(F.pixel_shuffle(x, self.stride))

    def _decode_windows(
        self, points: Keypoints, descriptors: Tensor, whole: tuple[int, int], variance: float
    ) -> _Windows:
        """whole: (H, W) of the image."""
        assert self.window is not None
        xy = points.xy
        side = self.window // self.stride  # in feature-map pixels
        # The window lies on whole pixels; the fraction of the location stays inside it and keeps its gradient.
        corner = (xy.detach() - (side - 1) / 2).round()  # (B, K, 2)
        splat = splat_each(xy - corner, points.score, descriptors, side, side, variance)  # (B*K, C, side, side)
        patch = F.pixel_shuffle(self.unet(splat), self.stride)  # (B*K, 4, side*s, side*s)
        patch = self._tinted(patch, descriptors)

        height, width = whole
        reach = torch.arange(side * self.stride, device=xy.device)
        start = corner.flatten(0, 1).long() * self.stride  # (B*K, 2) in image pixels
        columns = start[:, :1] + reach  # (B*K, side*s)
        rows = start[:, 1:] + reach
        valid = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None]
        valid = valid & points.found.flatten()[:, None, None]
        index = rows.clamp(0, height - 1)[:, :, None] * width + columns.clamp(0, width - 1)[:, None]
        return _Windows(patch.flatten(2), index.flatten(1)[:, None], valid.flatten(1)[:, None])

    def _tinted(self, logits: Tensor, descriptors: Tensor) -> Tensor:
        """logits (B*K, 4, h, w) of RGB and alpha, the first with the layers' base colours added."""
        if self.tint is None:
            return logits
        colour = F.pad(self.tint(descriptors.flatten(0, 1)), (0, 1))  # (B*K, 4): nothing for alpha
        return logits + colour[:, :, None, None]

    def _blend_windows(
        self, windows: _Windows, batch: int, whole: tuple[int, int], thumbnail: Tensor | None
    ) -> Decoded:
        """The same image as by `_blend`, but only sums over the layers exist at the image's size.

        softmax(a)_k = exp(a_k) / sum_j exp(a_j): both sums are gathered pixel by pixel from the windows, so that time
        and memory grow with the windows' area and not with K times the image.
        """
        weight = windows.patch[:, 3:].clamp(-_LARGEST, _LARGEST).exp() * windows.valid  # (B*K, 1, cells)
        carried = torch.cat([torch.sigmoid(windows.patch[:, :3]) * weight, weight], 1)  # (B*K, 4, cells)
        carried = carried.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2)  # (B, 4, K*cells)
        index = windows.index.view(batch, 1, -1).expand(-1, 4, -1)
        sums = carried.new_zeros(batch, 4, whole[0] * whole[1]).scatter_add(2, index, carried)
        colour, weight = sums.unflatten(2, whole).split([3, 1], 1)  # (B, 3, H, W), (B, 1, H, W)
        if self.background is None:
            # A pixel that no layer covers stays black.
            return Decoded(colour / weight.clamp_min(torch.finfo(weight.dtype).tiny), cover=(weight > 0).to(weight))
        every = weight + 1  # the background's logit is 0
        return Decoded((colour + self.background(thumbnail, whole, colour.device)) / every, cover=weight / every)

    def _blend(self, rgb: Tensor, logit: Tensor, inside: Tensor | None, thumbnail: Tensor | None) -> Decoded:
        """rgb (B, K, 3, H, W), alpha logits (B, K, 1, H, W) -> the image: softmax of alpha over the layers.

        inside: where a layer may have any alpha; None for everywhere.
        """
        if inside is not None:
            logit = logit.masked_fill(~inside, -torch.inf)
        if self.background is not None:
            # The background is one more layer, whose logit is 0 everywhere.
            alpha = torch.cat([logit, torch.zeros_like(logit[:, :1])], 1).softmax(1)
            layers, behind = alpha[:, :-1], alpha[:, -1]
            base = behind * self.background(thumbnail, (logit.shape[-2], logit.shape[-1]), logit.device)  # (B, 3, H, W)
            return Decoded((layers * rgb).sum(1) + base, rgb, layers, layers.sum(1))
        if inside is not None:
            # A pixel that no layer covers stays black.
            logit = torch.where(inside.any(1, keepdim=True), logit, 0.0)
            alpha = logit.softmax(1) * inside
        else:
            alpha = logit.softmax(1)
        return Decoded((alpha * rgb).sum(1), rgb, alpha, alpha.sum(1))  # (B, 3, H, W)


def _on_canvases(windows: _Windows, batch: int, whole: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """-> RGB and alpha logits (B, K, 4, H, W), 0 outside the windows, and where those lie (B, K, 1, H, W) bool."""
    patch, index, valid = windows.patch, windows.index, windows.valid
    canvas = patch.new_zeros(len(patch), 4, whole[0] * whole[1])
    # Cells outside the image are clamped to its edge: they add 0 there.
    canvas = canvas.scatter_add(2, index.expand(-1, 4, -1), patch * valid)
    inside = torch.zeros(len(patch), 1, whole[0] * whole[1], dtype=torch.int32, device=patch.device)
    inside = inside.scatter_add(2, index, valid.int()) > 0
    return canvas.unflatten(2, whole).unflatten(0, (batch, -1)), inside.unflatten(2, whole).unflatten(0, (batch, -1))
