"""What is behind the layers: a colour, a picture that all images share, or the grey of flat-field correction."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.data.flat_field import LEVEL

Kind = Literal["none", "colour", "picture", "flat"]

_PICTURE = 32  # side of the shared picture's grid: fine enough for a horizon, too coarse for things
_LIGHT = 4  # side of the grid on which an image's own light is measured and corrected


class Background(nn.Module):
    """One learnt colour, or one learnt picture whose light follows each image.

    The light is a smooth correction that a linear map makes from a thumbnail of the image (4 x 4 pixels): enough for a
    lamp that moves, too little to reconstruct an object, so that objects are left to the layers.
    """

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.side = _PICTURE if kind == "picture" else 1
        self.logit = nn.Parameter(torch.zeros(3, self.side, self.side))
        self.light = nn.Linear(3 * _LIGHT**2, 3 * _LIGHT**2) if kind == "picture" else None
        if self.light is not None:
            nn.init.zeros_(self.light.weight)
            nn.init.zeros_(self.light.bias)

    @torch.no_grad()
    def start_at(self, colour_logit: Tensor) -> None:
        """colour_logit (3,)."""
        self.logit.copy_(colour_logit[:, None, None].expand_as(self.logit))

    def forward(self, thumbnail: Tensor | None, size: tuple[int, int], device: torch.device | None = None) -> Tensor:
        """thumbnail (B, 3, 4, 4) as `make_thumbnail` gives it, None for the mean light -> (B or 1, 3, H, W)."""
        del device  # it is where its weights are
        if self.light is None:
            return torch.sigmoid(self.logit)[None].expand(-1, -1, *size)
        logit = F.interpolate(self.logit[None], size, mode="bilinear", align_corners=False)
        if thumbnail is not None:
            light = self.light(thumbnail.flatten(1)).view(-1, 3, _LIGHT, _LIGHT)
            logit = logit + F.interpolate(light, size, mode="bilinear", align_corners=False)
        return torch.sigmoid(logit)


class FlatBackground(nn.Module):
    """The even grey that flat-field correction leaves (`data.contrast: flat`): known, so nothing is learnt."""

    def start_at(self, colour_logit: Tensor) -> None:
        """It does not depend on the images."""

    def forward(self, thumbnail: Tensor | None, size: tuple[int, int], device: torch.device) -> Tensor:
        """-> (1, 3, H, W), the same for any thumbnail."""
        del thumbnail
        return torch.full((1, 3, *size), LEVEL, device=device)


def make_background(kind: Kind) -> Background | FlatBackground | None:
    if kind == "none":
        return None
    return FlatBackground() if kind == "flat" else Background(kind)


def make_thumbnail(image: Tensor) -> Tensor:
    """(B, 3, H, W) in [0, 1] -> (B, 3, 4, 4) around 0."""
    return F.adaptive_avg_pool2d(image, _LIGHT) - 0.5
