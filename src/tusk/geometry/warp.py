"""One random warp, applied alike to images, maps and points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tusk.config import WarpConfig
from tusk.geometry.tps import ThinPlateSpline, fit_spline

# The frame in which the spline lives is a fifth of a side larger on every side than the image, as if the image were
# padded; its border stays put, so that whatever enters the image comes from just outside it.
_FRAME = 1.4
_JITTER = 0.1
_CONTROL = [(sx * r, sy * r) for r in (0.7, 0.5) for sx in (-1, 1) for sy in (-1, 1)]
_BORDER = [(x, y) for x in (-0.99, 0.0, 0.99) for y in (-0.99, 0.0, 0.99) if (x, y) != (0.0, 0.0)]


@dataclass(frozen=True)
class Warp:
    """B sampled warps. A warped image takes its pixel at v from the original's f(v)."""

    spline: ThinPlateSpline  # f, in the padded frame's coordinates from -1 to 1
    border: Literal["black", "white", "reflect"]
    own: Tensor | None = None  # (B, 2, 2): corners (x, y), from 0 to 1, of the window that shows the original
    # Of each size that was asked for: several losses compare maps of one size.
    _grids: dict[tuple[int, int], Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, part: slice) -> Warp:
        """The warps of a part of the batch."""
        return Warp(self.spline[part], self.border, None if self.own is None else self.own[part])

    def images(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) in [0, 1] -> the same, warped, with another part of the image around the window `own`."""
        warped = self.maps(images)
        if self.own is None:
            return warped
        height, width = images.shape[-2:]
        elsewhere = warped.roll((height // 2, width // 2), (2, 3))
        return torch.where(_within(self.own, height, width), warped, elsewhere)

    def keeps(self, xy: Tensor, height: int, width: int, margin: float) -> Tensor:
        """(B, P, 2) pixels of the warped image -> (B, P) bool: whether all within the margin is the original's own."""
        if self.own is None:
            return torch.ones(xy.shape[:2], dtype=torch.bool, device=xy.device)
        size = xy.new_tensor([width, height])
        low, high = (corner[:, None] * size - 0.5 for corner in self.own.unbind(1))  # (B, 1, 2)
        # What lies at the image's edge is its own up to there.
        low = torch.where(low <= 0, -torch.inf, low + margin)
        high = torch.where(high >= size - 1, torch.inf, high - margin)
        return ((xy >= low) & (xy <= high)).all(-1)

    def maps(self, values: Tensor) -> Tensor:
        """(B, C, H, W) of any channels and resolution -> the same, warped."""
        grid = self.grid(values.shape[-2], values.shape[-1])
        if self.border == "white":
            return 1 - F.grid_sample(1 - values, grid, align_corners=False)
        padding = "zeros" if self.border == "black" else "reflection"
        return F.grid_sample(values, grid, padding_mode=padding, align_corners=False)

    def grid(self, height: int, width: int) -> Tensor:
        """(B, H, W, 2): for every pixel of the warped image, where in the original it comes from, from -1 to 1."""
        if (height, width) in self._grids:
            return self._grids[height, width]
        where = self.spline.centres
        y = (torch.arange(height, device=where.device, dtype=where.dtype) + 0.5) * 2 / height - 1
        x = (torch.arange(width, device=where.device, dtype=where.dtype) + 0.5) * 2 / width - 1
        pixels = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).view(1, -1, 2)  # (1, H*W, 2)
        source = self.spline(pixels.expand(len(where), -1, -1) / _FRAME) * _FRAME
        self._grids[height, width] = source.view(-1, height, width, 2)
        return self._grids[height, width]

    def inside(self, height: int, width: int) -> Tensor:
        """(B, 1, H, W) bool: the pixels of the warped image that are the original's, and from inside it."""
        inside = (self.grid(height, width).abs() <= 1).all(-1)[:, None]
        return inside if self.own is None else inside & _within(self.own, height, width)

    def points(self, xy: Tensor, height: int, width: int) -> Tensor:
        """(B, P, 2) pixels of the original -> where they are in the warped image."""
        return self._through(self.spline.inverse, xy, height, width)

    def source_points(self, xy: Tensor, height: int, width: int) -> Tensor:
        """(B, P, 2) pixels of the warped image -> where they come from in the original."""
        return self._through(self.spline, xy, height, width)

    def _through(self, function: Callable[[Tensor], Tensor], xy: Tensor, height: int, width: int) -> Tensor:
        size = xy.new_tensor([width, height])
        normal = (xy + 0.5) * 2 / size - 1
        moved = function(normal / _FRAME) * _FRAME
        return (moved + 1) * size / 2 - 0.5


def _within(boxes: Tensor, height: int, width: int) -> Tensor:
    """Boxes (B, 2, 2): corners (x, y) from 0 to 1 -> (B, 1, H, W) bool: the pixels that lie in them."""
    y = (torch.arange(height, device=boxes.device) + 0.5).view(1, 1, -1, 1) / height
    x = (torch.arange(width, device=boxes.device) + 0.5).view(1, 1, 1, -1) / width
    left, top, right, bottom = boxes.view(-1, 4, 1, 1, 1).unbind(1)  # (B, 1, 1, 1) each
    return (x >= left) & (x <= right) & (y >= top) & (y <= bottom)


def sample_warp(config: WarpConfig, batch: int, generator: torch.Generator, device: torch.device | str = "cpu") -> Warp:
    """`batch` random warps. The numbers are drawn on the generator's device, so that a seed means the same anywhere."""

    def uniform(*shape: int, reach: float) -> Tensor:
        return (torch.rand(*shape, generator=generator, device=generator.device) * 2 - 1) * reach

    base = torch.tensor(_CONTROL, device=generator.device)
    source = base + uniform(batch, len(_CONTROL), 2, reach=_JITTER)  # (B, 8, 2)
    target = source + uniform(batch, len(_CONTROL), 2, reach=config.tps)

    offset = uniform(batch, 1, 2, reach=config.shift)
    scale = config.scale + uniform(batch, 1, 1, reach=config.scale_jitter)
    target = (target - offset) * scale + offset

    offset = uniform(batch, 1, 2, reach=config.shift)
    angle = uniform(batch, reach=config.rotation)
    turn = torch.stack(
        [torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)], -2
    )  # (B, 2, 2)
    target = (target - offset) @ turn.mT + offset

    still = torch.tensor(_BORDER, device=generator.device).expand(batch, -1, -1)  # (B, 8, 2)
    # Fitted where they were drawn: small systems in double precision, which are the same to the bit for any device.
    spline = fit_spline(torch.cat([source, still], 1), torch.cat([target, still], 1)).to(device)

    if config.translate > 0:
        offset = uniform(batch, 1, 2, reach=config.translate).to(device) / _FRAME
        spline = replace(spline, affine=torch.cat([spline.affine[:, :1] + offset, spline.affine[:, 1:]], 1))

    if config.surroundings is None:
        return Warp(spline, config.border)
    least, most = config.surroundings
    side = least + (most - least) * torch.rand(batch, 2, generator=generator, device=generator.device)
    corner = (1 - side) * torch.rand(batch, 2, generator=generator, device=generator.device)
    return Warp(spline, config.border, torch.stack([corner, corner + side], 1).to(device))
