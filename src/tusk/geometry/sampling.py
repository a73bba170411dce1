"""Maps read at places between their pixels."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def sample_bilinear(values: Tensor, xy: Tensor) -> Tensor:
    """values (B, C, H, W) read at xy (B, K, 2) pixels -> (B, K, C); beyond the border the edge goes on."""
    size = xy.new_tensor([values.shape[-1], values.shape[-2]])
    grid = (xy + 0.5) * 2 / size - 1  # the pixel centre 0 is at -1 + 1/size
    read = F.grid_sample(values, grid[:, None], padding_mode="border", align_corners=False)  # (B, C, 1, K)
    return read[:, :, 0].transpose(1, 2)


def sample_truncated(values: Tensor, xy: Tensor) -> Tensor:
    """The authors' reading: the pixel at the location with its fraction cut off. Shapes as in `sample_bilinear`."""
    width = values.shape[-1]
    whole = xy.long()
    index = whole[..., 1].clamp(0, values.shape[-2] - 1) * width + whole[..., 0].clamp(0, width - 1)  # (B, K)
    flat = values.flatten(2)  # (B, C, H*W)
    return flat.gather(2, index[:, None].expand(-1, flat.shape[1], -1)).transpose(1, 2)
