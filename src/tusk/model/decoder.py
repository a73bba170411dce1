"""Keypoints -> image again: one sum of all (plain), or one RGBA layer for each keypoint (layers)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.model.background import Background, Kind
from tusk.model.compressed import paint_layers
from tusk.model.splat import splat_each, splat_sum
from tusk.model.unet import UNet

Mode = Literal["plain", "layers"]


@dataclass(frozen=True)
class Decoded:
    """What the decoder paints, in pixels of the image; layers only in layer mode."""

    reconstruction: Tensor  # (B, 3, H, W) in [0, 1]
    layer_rgb: Tensor | None = None  # (B, K, 3, H, W) in [0, 1]
    layer_alpha: Tensor | None = None  # (B, K, 1, H, W), summing to 1 over K and the background


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
    ) -> None:
        super().__init__()
        self.stride = stride
        self.mode = mode
        self.window = window
        self.unet = UNet(channels, (3 if mode == "plain" else 4) * stride**2, width, levels)
        self.background = None if background == "none" else Background(background)

    @torch.no_grad()
    def start_at(self, colour: Tensor) -> None:
        """Let an untrained decoder paint this RGB colour (3,) in [0, 1]."""
        logit = torch.logit(colour.clamp(0.01, 0.99))
        assert self.unet.last.bias is not None
        outputs = self.unet.last.bias.view(-1, self.stride**2)  # the channels that unfold to R, G, B and alpha
        outputs[:3] = logit[:, None]
        if self.background is not None:
            self.background.start_at(logit)

    def forward(
        self,
        xy: Tensor,
        score: Tensor,
        descriptors: Tensor,
        size: tuple[int, int],
        variance: float,
        afar: Tensor | None = None,
    ) -> Decoded:
        """xy (B, K, 2) in feature-map pixels, score (B, K), descriptors (B, K, C), size (H, W) of the feature map.

        afar (B, 3, 4, 4): the images from afar, for a background whose light follows them.
        """
        if self.mode == "plain":
            splat = splat_sum(xy, score, descriptors, *size, variance)  # (B, C, H/s, W/s)
            painted = F.pixel_shuffle(self.unet(splat), self.stride)  # (B, 3, H, W)
            return Decoded(torch.sigmoid(painted))
        if self.window is None or self.window // self.stride >= max(size):
            painted = paint_layers(self.unet, xy, score, descriptors, size, variance)  # (B*K, 4*s*s, H/s, W/s)
            painted = F.pixel_shuffle(painted, self.stride)  # (B*K, 4, H, W)
            painted = painted.unflatten(0, xy.shape[:2])  # (B, K, 4, H, W)
            inside = None
        else:
            painted, inside = self._paint_windows(xy, score, descriptors, size, variance)
        return self._blend(torch.sigmoid(painted[:, :, :3]), painted[:, :, 3:], inside, afar)

    def _paint_windows(
        self, xy: Tensor, score: Tensor, descriptors: Tensor, size: tuple[int, int], variance: float
    ) -> tuple[Tensor, Tensor]:
        """-> RGB and alpha logits (B, K, 4, H, W), 0 outside the windows, and where those lie (B, K, 1, H, W) bool."""
        assert self.window is not None
        batch, count = xy.shape[:2]
        side = self.window // self.stride  # in feature-map pixels
        # The window stands on whole pixels; the fraction of the location stays inside it and keeps its gradient.
        corner = (xy.detach() - (side - 1) / 2).round()  # (B, K, 2)
        splat = splat_each(xy - corner, score, descriptors, side, side, variance)  # (B*K, C, side, side)
        patch = F.pixel_shuffle(self.unet(splat), self.stride)  # (B*K, 4, side*s, side*s)

        height, width = size[0] * self.stride, size[1] * self.stride
        reach = torch.arange(side * self.stride, device=xy.device)
        start = corner.long() * self.stride  # (B, K, 2) in image pixels
        columns = start[..., 0, None] + reach  # (B, K, side*s)
        rows = start[..., 1, None] + reach
        valid = ((rows >= 0) & (rows < height))[..., :, None] & ((columns >= 0) & (columns < width))[..., None, :]
        index = rows.clamp(0, height - 1)[..., :, None] * width + columns.clamp(0, width - 1)[..., None, :]
        index = index.view(batch * count, 1, -1)  # (B*K, 1, cells)
        valid = valid.view(batch * count, 1, -1)
        canvas = patch.new_zeros(batch * count, 4, height * width)
        # Cells outside the image are clamped to its edge: they add 0 there.
        canvas = canvas.scatter_add(2, index.expand(-1, 4, -1), patch.flatten(2) * valid)
        inside = torch.zeros(batch * count, 1, height * width, dtype=torch.int32, device=xy.device)
        inside = inside.scatter_add(2, index, valid.int()) > 0
        return (
            canvas.view(batch, count, 4, height, width),
            inside.view(batch, count, 1, height, width),
        )

    def _blend(self, rgb: Tensor, logit: Tensor, inside: Tensor | None, afar: Tensor | None) -> Decoded:
        """rgb (B, K, 3, H, W), alpha logits (B, K, 1, H, W) -> the picture: softmax of alpha over the layers."""
        if inside is not None:
            logit = logit.masked_fill(~inside, -torch.inf)
        if self.background is not None:
            # The background is one more layer, whose logit is 0 everywhere.
            alpha = torch.cat([logit, torch.zeros_like(logit[:, :1])], 1).softmax(1)
            layers, behind = alpha[:, :-1], alpha[:, -1]
            base = behind * self.background(afar, (logit.shape[-2], logit.shape[-1]))  # (B, 3, H, W)
            return Decoded((layers * rgb).sum(1) + base, rgb, layers)
        if inside is not None:
            # A pixel that no window covers belongs to nobody and stays black.
            logit = torch.where(inside.any(1, keepdim=True), logit, 0.0)
            alpha = logit.softmax(1) * inside
        else:
            alpha = logit.softmax(1)
        return Decoded((alpha * rgb).sum(1), rgb, alpha)  # (B, 3, H, W)
