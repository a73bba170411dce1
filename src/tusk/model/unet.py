"""The U-Net that both the encoder and the decoder are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Padding = Literal["zeros", "replicate"]
Norm = Literal["group", "channel"]
ApplyNorm = Callable[[nn.Module, Tensor], Tensor]  # a norm of the network and its input -> what goes on from there


def apply_norm(norm: nn.Module, x: Tensor) -> Tensor:
    """As the norm has it."""
    result: Tensor = norm(x)
    return result


class ChannelNorm(nn.Module):
    """Every pixel's channels to a root mean square of 1, then a factor and a shift for each channel.

    Unlike GroupNorm it depends on nothing but the pixel: an empty image stays empty, and a picture of any size gives
    the same as its tiles.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        factor = torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-4)  # (B, 1, H, W)
        return x * factor * self.weight[:, None, None] + self.bias[:, None, None]


class _EdgePadding(torch.autograd.Function):
    """`F.pad` by one pixel, of which torch computes the gradient pixel by pixel: this takes a third of the time."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return F.pad(x, (1, 1, 1, 1), mode="replicate")

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        rows = gradient[..., 1:-1, :].clone()
        rows[..., 0, :] += gradient[..., 0, :]
        rows[..., -1, :] += gradient[..., -1, :]
        result = rows[..., 1:-1].clone()
        result[..., 0] += rows[..., 0]
        result[..., -1] += rows[..., -1]
        return result


class Conv3x3(nn.Conv2d):
    """A 3x3 convolution that leaves the size unchanged."""

    def __init__(self, inputs: int, outputs: int, padding: Padding = "zeros") -> None:
        super().__init__(inputs, outputs, 3, padding=1, padding_mode=padding)

    def forward(self, x: Tensor) -> Tensor:
        if self.padding_mode == "zeros":
            return super().forward(x)
        padded: Tensor = _EdgePadding.apply(x)  # type: ignore[no-untyped-call]
        return F.conv2d(padded, self.weight, self.bias)


class DoubleConv(nn.Module):
    """Twice (3x3 convolution, norm, ReLU), the size unchanged."""

    def __init__(
        self, inputs: int, outputs: int, groups: int, padding: Padding = "zeros", norm: Norm = "group"
    ) -> None:
        super().__init__()

        def make_norm() -> nn.GroupNorm | ChannelNorm:
            return nn.GroupNorm(groups, outputs) if norm == "group" else ChannelNorm(outputs)

        self.conv1 = Conv3x3(inputs, outputs, padding)
        self.norm1 = make_norm()
        self.conv2 = Conv3x3(outputs, outputs, padding)
        self.norm2 = make_norm()

    def forward(self, x: Tensor, apply: ApplyNorm = apply_norm) -> Tensor:
        return self.after_first(self.conv1(x), apply)

    def after_first(self, x: Tensor, apply: ApplyNorm = apply_norm) -> Tensor:
        """All that follows the first convolution."""
        # GroupNorm's backward needs its input, not its output: ReLU may overwrite that and save a third of the memory.
        x = F.relu_(apply(self.norm1, x))
        return F.relu_(apply(self.norm2, self.conv2(x)))


class UNet(nn.Module):
    """(B, inputs, H, W) -> (B, outputs, H, W), for H and W that `2 ** (levels - 1)` divides.

    Level i is `width * 2**i` channels wide and has `width` groups at every level, so the first is an instance norm.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        levels: int,
        padding: Padding = "zeros",
        norm: Norm = "group",
    ) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.down = nn.ModuleList(
            DoubleConv(before, after, width, padding, norm)
            for before, after in zip([inputs, *widths], widths, strict=False)
        )
        # Upwards from the second-deepest level to the first: each takes what comes from below beside its own skip.
        self.up = nn.ModuleList(
            DoubleConv(widths[level + 1] + widths[level], widths[level], width, padding, norm)
            for level in reversed(range(levels - 1))
        )
        self.last = nn.Conv2d(width, outputs, 1)
        # Aligned corners, as the authors have it, stretch a map by an amount that depends on its size.
        self.align_corners = norm == "group"
        # How training has it computed: in this type where it is not float32, and once more for the gradients.
        self.precision: torch.dtype | None = None
        self.recompute = False

    def forward(self, x: Tensor, apply: ApplyNorm = apply_norm) -> Tensor:
        """apply: how each of the norms is applied, where not as it has it."""
        result: Tensor = self.last(self.trunk(x, apply))  # (B, outputs, H, W)
        return result

    def trunk(self, x: Tensor, apply: ApplyNorm = apply_norm) -> Tensor:
        """All but the last convolution: (B, inputs, H, W) -> (B, width, H, W), of the type of the input."""
        return self.mixed(self._trunk, x, apply)

    def mixed(self, compute: Callable[..., Tensor], x: Tensor, *others: Any) -> Tensor:
        """`compute(x, *others)` in the precision that is set; the result is of the type of x again."""
        again = self.recompute and torch.is_grad_enabled()
        run = partial(checkpoint, compute, use_reentrant=False) if again else compute
        if self.precision is None:
            return run(x, *others)
        with torch.autocast(x.device.type, self.precision):
            return run(x, *others).to(x.dtype)

    def _trunk(self, x: Tensor, apply: ApplyNorm) -> Tensor:
        skips: list[Tensor] = []
        for block in self.down[:-1]:
            x = block(x, apply)  # (B, width * 2**level, H / 2**level, W / 2**level)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.down[-1](x, apply)  # the deepest: (B, width * 2**(levels-1), H / 2**(levels-1), ...)
        for block, skip in zip(self.up, reversed(skips), strict=True):
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=self.align_corners)
            x = block(torch.cat([x, skip], dim=1), apply)  # (B, width * 2**level, H / 2**level, W / 2**level)
        return x
