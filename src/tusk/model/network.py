"""The whole forward pass on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tusk.config import ModelConfig
from tusk.errors import DataError, UsageError
from tusk.geometry.sampling import sample_bilinear, sample_truncated
from tusk.model.background import make_thumbnail
from tusk.model.canvas import CanvasDecoder
from tusk.model.decoder import Decoded, Decoder
from tusk.model.descriptors import DescriptorSpace, Statistics
from tusk.model.encoder import Encoder
from tusk.model.keypoints import Keypoints, extract_keypoints, extract_sized_keypoints, most_peaks
from tusk.model.prototypes import Prototypes
from tusk.model.unet import ApplyNorm
from tusk.model.views import encode_views


@dataclass(frozen=True)
class Encoding:
    """What the encoder gives for B images; s is the stride."""

    feature_map: Tensor  # (B, C, ceil(H/s), ceil(W/s))
    score_map: Tensor  # (B, 1, ceil(H/s), ceil(W/s)) in (0, 1)
    keypoints: Keypoints  # in pixels of those maps
    descriptors: Tensor  # (B, K, C) of length 1
    statistics: Statistics  # what the descriptors were standardised with
    thumbnail: Tensor  # (B, 3, 4, 4): of the images, for a background whose light follows them
    radius_map: Tensor | None = None  # (B, 1, ceil(H/s), ceil(W/s)): in pixels of the map, where sizes are learnt

    def trimmed(self, min_score: float) -> Encoding:
        """Without the last slots that are empty, or below that score, in all images; one is always left."""
        used = (self.keypoints.found & (self.keypoints.score >= min_score)).any(0)  # (K,)
        count = max(1, int(used.nonzero().max()) + 1 if bool(used.any()) else 0)
        points = self.keypoints
        radius = None if points.radius is None else points.radius[:, :count]
        trimmed = Keypoints(points.xy[:, :count], points.score[:, :count], points.found[:, :count], radius)
        return replace(self, keypoints=trimmed, descriptors=self.descriptors[:, :count])


@dataclass(frozen=True)
class Output:
    """Everything that the network gives for B images."""

    feature_map: Tensor  # (B, C, ceil(H/s), ceil(W/s))
    score_map: Tensor  # (B, 1, ceil(H/s), ceil(W/s)) in (0, 1)
    xy: Tensor  # (B, K, 2) in image pixels, best first
    score: Tensor  # (B, K)
    found: Tensor  # (B, K) bool; False where the image has fewer than K peaks
    descriptors: Tensor  # (B, K, C) of length 1
    probability: Tensor  # (B, K, M)
    label: Tensor  # (B, K) the type, 0..M-1
    reconstruction: Tensor  # (B, 3, H, W) in [0, 1]
    layer_rgb: Tensor | None  # (B, K, 3, H, W) in [0, 1]
    layer_alpha: Tensor | None  # (B, K, 1, H, W)
    size: Tensor | None = None  # (B, K): diameter in image pixels, where sizes are learnt


class Network(nn.Module):
    """Image -> typed keypoints -> image."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        size = (config.channels, config.width, config.levels, config.stride)
        self.encoder = Encoder(*size, config.padding, config.norm, config.sizes)
        self.descriptor_space = DescriptorSpace(config.channels, config.descriptor_space)
        self.prototypes = Prototypes(
            config.types, config.channels, config.type_distance, config.type_scale, config.prototypes
        )
        self.decoder: Decoder | CanvasDecoder
        if config.sizes is not None:
            self.decoder = CanvasDecoder(config.channels, config.stride, config.background)
        else:
            self.decoder = Decoder(
                *size, config.decode, config.layer_window, config.background, tint=config.layer_base_colour
            )

    @property
    def device(self) -> torch.device:
        """Where it lies, and its images have to."""
        return self.prototypes.weight.device

    def forward(
        self,
        image: Tensor,
        keypoints: int | None = None,
        window: float | None = None,
        *,
        missing: Literal["error", "empty"] = "error",
        min_score: float = 0.0,
        views: int = 1,
    ) -> Output:
        """image (B, 3, H, W) in [0, 1], of any size that holds the peaks -> `Output` (see there for the shapes).

        `keypoints` and `window` (in image pixels) may differ from the configured ones. Where an image has fewer peaks:
        an error, or empty keypoints of score 0 whose `found` is False. With sizes, slots that no image has a keypoint
        of `min_score` for are left away: most are empty there, and each would be decoded. Scores and sizes are means
        over so many `views` (see `encode_views`).
        """
        encoding = self.encode(image, keypoints, window, min_score, views)
        if self.config.sizes is not None and missing == "empty":
            encoding = encoding.trimmed(min_score)
        points = encoding.keypoints
        if missing == "error" and not bool(points.found.all()):
            least = int(points.found.sum(1).min())
            raise UsageError(
                "model.keypoints",
                f"{points.found.shape[1]} keypoints were asked for, but an image has only {least} peaks",
                f"ask for at most {least}, or use a smaller model.window",
            )
        probability = self.prototypes(encoding.descriptors)  # (B, K, M)
        size = (image.shape[-2], image.shape[-1])
        decoded = self.decode(points, encoding.descriptors, size, thumbnail=encoding.thumbnail)
        return Output(
            feature_map=encoding.feature_map,
            score_map=encoding.score_map,
            xy=self.to_image(points.xy),
            score=points.score,
            found=points.found,
            descriptors=encoding.descriptors,
            probability=probability,
            label=probability.argmax(-1),
            reconstruction=decoded.reconstruction,
            layer_rgb=decoded.layer_rgb,
            layer_alpha=decoded.layer_alpha,
            size=None if points.radius is None else 2 * self.config.stride * points.radius,
        )

    def encode(
        self,
        image: Tensor,
        keypoints: int | None = None,
        window: float | None = None,
        min_score: float = 0.0,
        views: int = 1,
    ) -> Encoding:
        """image (B, 3, H, W) -> maps, keypoints and descriptors; `window` in image pixels, if not as configured.

        `min_score` and `views` are as in `forward`.
        """
        config = self.config
        height, width = image.shape[-2:]
        count = config.keypoints if keypoints is None else keypoints
        side = config.window if window is None else window
        check_size(config, height, width, count, side)
        feature_map, score_map, radius_map = encode_views(self.encoder, self._pad(image), views)
        rows, columns = -(-height // config.stride), -(-width // config.stride)
        if feature_map.shape[-2:] != (rows, columns):  # the padding holds no keypoints
            feature_map, score_map = feature_map[..., :rows, :columns], score_map[..., :rows, :columns]
            radius_map = None if radius_map is None else radius_map[..., :rows, :columns]
        window = config.window_on_map(side)
        if radius_map is None:
            points = extract_keypoints(score_map, count, window, config.temperature, count_border=config.count_border)
        else:
            points = extract_sized_keypoints(score_map, radius_map, count, window, config.temperature, min_score)
        # With sizes there are more slots than things in most images; the score of an empty one is next to nothing.
        weight = None if points.radius is None else points.score
        descriptors, statistics = self.descriptor_space(self._read(feature_map, points.xy), weight)  # (B, K, C)
        return Encoding(feature_map, score_map, points, descriptors, statistics, make_thumbnail(image), radius_map)

    def read_descriptors(self, feature_map: Tensor, xy: Tensor) -> Tensor:
        """Of any places xy (B, K, 2), in pixels of the feature map -> (B, K, C) of length 1."""
        descriptors: Tensor = self.descriptor_space(self._read(feature_map, xy))[0]
        return descriptors

    def _read(self, feature_map: Tensor, xy: Tensor) -> Tensor:
        read = sample_bilinear if self.config.descriptor_read == "bilinear" else sample_truncated
        return read(feature_map, xy)

    def decode(
        self,
        points: Keypoints,
        descriptors: Tensor,
        size: tuple[int, int],
        variance: float | None = None,
        thumbnail: Tensor | None = None,
        *,
        layers: bool = True,
    ) -> Decoded:
        """Keypoints in feature-map pixels and descriptors (B, K, C) -> an image of size (H, W), and its layers.

        thumbnail (B, 3, 4, 4), of the encoding: sets the light of a background that follows the image. Training needs
        no single `layers`.
        """
        height, width = size
        rows, columns = self._padded(height, width)
        padded = (rows // self.config.stride, columns // self.config.stride)
        used = self.config.variance if variance is None else variance
        decoded: Decoded = self.decoder(points, descriptors, padded, used, thumbnail, layers=layers)
        if (rows, columns) == size:
            return decoded
        step = rows // decoded.reconstruction.shape[-2]  # 1, or the stride where it is at the map's size
        return decoded.crop(-(-height // step), -(-width // step))

    def decode_sum(self, points: Keypoints, descriptors: Tensor, size: tuple[int, int], apply: ApplyNorm) -> Tensor:
        """The image of a plain decoder, (B, 3, H, W), with its norms applied in another way."""
        assert isinstance(self.decoder, Decoder)
        rows, columns = (side // self.config.stride for side in self._padded(*size))
        image = self.decoder.decode_sum(points, descriptors, (rows, columns), self.config.variance, apply)
        return image[..., : size[0], : size[1]]

    def background(self, image: Tensor) -> Tensor | None:
        """image (B, 3, H, W) in [0, 1] -> the background behind its layers, (B or 1, 3, H, W), where there is one."""
        if self.decoder.background is None:
            return None
        height, width = image.shape[-2:]
        behind: Tensor = self.decoder.background(make_thumbnail(image), self._padded(height, width), image.device)
        return behind[..., :height, :width]

    def to_image(self, xy: Tensor) -> Tensor:
        """Feature-map pixels -> image pixels; a feature-map pixel's centre is that of its s x s block."""
        return (xy + 0.5) * self.config.stride - 0.5

    def to_map(self, xy: Tensor) -> Tensor:
        """Image pixels -> feature-map pixels."""
        return (xy + 0.5) / self.config.stride - 0.5

    def _padded(self, height: int, width: int) -> tuple[int, int]:
        """The size that the U-Nets run at."""
        step = self.config.multiple
        return -(-height // step) * step, -(-width // step) * step

    def _pad(self, image: Tensor) -> Tensor:
        """On the right and below only, so that coordinates stay as they are; the edge goes on."""
        height, width = self._padded(image.shape[-2], image.shape[-1])
        right, below = width - image.shape[-1], height - image.shape[-2]
        return F.pad(image, (0, right, 0, below), mode="replicate") if right or below else image


def check_size(config: ModelConfig, height: int, width: int, keypoints: int, window: float | None = None) -> None:
    """Refuse images that are too small for the network, or for so many keypoints with that window (in image pixels)."""
    least, stride = config.multiple, config.stride
    if min(height, width) < least:
        raise DataError(
            f"image of {width}x{height} pixels",
            f"this network needs at least {least}x{least}",
            f"enlarge the image or use a model with fewer levels than {config.levels}",
        )
    side = config.window if window is None else window
    room = most_peaks(-(-height // stride), -(-width // stride), config.window_on_map(side))
    if keypoints > room:
        raise UsageError(
            "model.keypoints",
            f"{keypoints} keypoints do not fit in {width}x{height} pixels with a window of {side:g}",
            f"ask for at most {room}, or use larger images or a smaller model.window",
        )


def standardise_map(feature_map: Tensor, statistics: Statistics) -> Tensor:
    """feature_map (B, C, H, W) in the units of standardised descriptors."""
    # By sums and products, whose gradients are cheap; those of differences and quotients cost a pass over it more each.
    shift, factor = -statistics.mean[:, None, None], (1 / statistics.std)[:, None, None]
    return (feature_map + shift) * factor


def seeded_network(config: ModelConfig, seed: int) -> Network:
    """A network whose first weights depend on the seed alone; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(config)


@contextmanager
def eval_mode(network: Network) -> Iterator[None]:
    """The network is left in the mode that it was in, whatever happens."""
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)
