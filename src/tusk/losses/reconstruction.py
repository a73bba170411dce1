"""How well the image is reconstructed (paper, equation 1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.config import Config, LossSettings, Schedule
from tusk.data.fetch import default_data_dir
from tusk.errors import DataError
from tusk.losses.registry import Loss, register

if TYPE_CHECKING:
    from tusk.losses.context import StepContext

# VGG16's convolutions up to relu4_3, as (block, channels of each convolution); "M" pools before each further block.
_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512))
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class ReconstructionConfig(LossSettings):
    """How well the image is reconstructed."""

    weight: Schedule = 1.0
    kind: Literal["mse", "perceptual"] = "mse"
    """Mean squared error of the pixels, or difference of the features of VGG16."""
    views: Literal["both", "first"] = "both"
    """Reconstruct both views of a pair, as in the paper, or the first only, which saves half of the decoder's time."""
    relative: bool = False
    """Count the error as a share of the images' variance: then it weighs alike for dark, pale and contrasty images."""
    vgg16: Path | None = None
    """File with the weights of VGG16 for the perceptual loss; None: where `tusk data get vgg16` puts it."""

    def splits_over_images(self) -> bool:
        return not self.relative


@register("reconstruction", ReconstructionConfig, order=0)
class Reconstruction(Loss[ReconstructionConfig]):
    """Of both views, or of the first ones."""

    def __init__(self, settings: ReconstructionConfig, config: Config) -> None:
        super().__init__(settings, config)
        self.error: Callable[[Tensor, Tensor], Tensor] = mse_loss
        if settings.kind == "perceptual":
            self.error = load_perceptual_loss(settings.vgg16 or default_data_dir() / "vgg16.safetensors")

    def is_active(self, progress: float) -> bool:
        del progress
        return True  # also where its weight is 0 for a while: several processes need a gradient of every weight

    def value(self, step: StepContext) -> Tensor:
        images, decoded = step.images[step.shown], step.decoded.reconstruction
        if decoded.shape != images.shape:  # a decoder that works at the feature map's size
            images = F.avg_pool2d(images, step.network.config.stride, ceil_mode=True, count_include_pad=False)
        error = self.error(images, decoded)
        return error / _variance(step) if self.settings.relative else error


@torch.no_grad()
def _variance(step: StepContext) -> Tensor:
    """Of the images of all processes, over pixels and images, the mean of the channels."""
    mean = step.ranks.mean(step.images.mean((0, 2, 3)))
    square = step.ranks.mean(step.images.square().mean((0, 2, 3)))
    return (square - mean.square()).mean().clamp_min(1e-4)


def mse_loss(image: Tensor, reconstruction: Tensor) -> Tensor:
    """Mean squared error, both (B, 3, H, W) in [0, 1]."""
    return F.mse_loss(reconstruction, image)


class PerceptualLoss(nn.Module):
    """L1 between the features of a frozen VGG16 after relu1_2, relu2_2, relu3_3 and relu4_3."""

    mean: Tensor
    std: Tensor

    def __init__(self, side: int = 224) -> None:
        super().__init__()
        self.side = side
        self.blocks = nn.ModuleList()
        inputs = 3
        for widths in _BLOCKS:
            block = nn.ModuleList()
            for width in widths:
                block.append(nn.Conv2d(inputs, width, 3, padding=1))
                inputs = width
            self.blocks.append(block)
        self.register_buffer("mean", torch.tensor(_MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(_DEVIATION).view(1, 3, 1, 1))
        self.requires_grad_(False)

    def forward(self, image: Tensor, reconstruction: Tensor) -> Tensor:
        """Both (B, 3, H, W) in [0, 1] -> the sum over the four places of the mean absolute difference."""
        with torch.no_grad():
            targets = self.features(image)
        pairs = zip(self.features(reconstruction), targets, strict=True)
        return torch.stack([F.l1_loss(ours, theirs) for ours, theirs in pairs]).sum()

    def features(self, image: Tensor) -> list[Tensor]:
        """(B, 3, H, W) -> (B, 64, h, w), (B, 128, h/2, w/2), (B, 256, h/4, w/4), (B, 512, h/8, w/8)."""
        factor = self.side / max(image.shape[-2:])
        size = [max(8, round(side * factor)) for side in image.shape[-2:]]
        x = F.interpolate(image, size, mode="bilinear", align_corners=False, antialias=factor < 1)
        x = (x - self.mean) / self.std
        places = []
        for number, block in enumerate(self.blocks):
            if number:
                x = F.max_pool2d(x, 2)
            assert isinstance(block, nn.ModuleList)
            for convolution in block:
                x = F.relu(convolution(x))
            places.append(x)
        return places


def load_perceptual_loss(path: Path, side: int = 224) -> PerceptualLoss:
    """The loss with VGG16's weights from a safetensors file: `conv1_1.weight`, `conv1_1.bias` ... `conv4_3.bias`."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise DataError(
            str(path),
            "the weights of VGG16 are not there",
            "run 'tusk data get vgg16', or set losses.reconstruction.vgg16",
        )
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(str(path), f"VGG16's weights cannot be read ({error})", "fetch the file again") from error
    loss = PerceptualLoss(side)
    wanted = loss.state_dict()
    state = {}
    for name, value in wanted.items():
        if name in ("mean", "std"):
            state[name] = value
            continue
        _, block, convolution, kind = name.split(".")
        key = f"conv{int(block) + 1}_{int(convolution) + 1}.{kind}"
        if key not in stored or stored[key].shape != value.shape:
            raise DataError(str(path), f"'{key}' is missing or misshapen", "fetch VGG16's weights again")
        state[name] = stored[key].float()
    loss.load_state_dict(state)
    return loss
