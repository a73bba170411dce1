"""The network."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tusk.config.base import Part, Positive

_WIDEST = 2048  # channels of the deepest level: the weights then take about a gigabyte

Size = Annotated[float, Field(ge=1, le=4096)]


class ModelConfig(Part):
    """The network."""

    keypoints: Annotated[int, Field(ge=1, le=4096)] = 9
    """How many keypoints an image gives (K). May be another number in use."""
    types: Annotated[int, Field(ge=1, le=4096)] = 10
    """How many types there are (M)."""
    channels: Annotated[int, Field(ge=1, le=1024)] = 32
    """Length of a descriptor (C)."""
    width: Annotated[int, Field(ge=1, le=1024)] = 32
    """Channels of the first level of the U-Nets; each deeper level doubles them, up to 2048."""
    levels: Annotated[int, Field(ge=1, le=6)] = 4
    """Levels of the U-Nets."""
    stride: Literal[1, 2, 4] = 1
    """The network runs at 1/stride of the image's size; locations stay in image pixels."""
    padding: Literal["zeros", "replicate"] = "zeros"
    """How the encoder pads the image at its edge. Zeros, as in the paper, tell it where the edge is: the corners of
    an image can then become keypoints, and places in it types."""
    norm: Literal["group", "channel"] = "group"
    """Norms of the encoder: over the whole image, as in the paper, or of each pixel's channels, so that what is found
    at a place does not depend on how much image lies around it."""
    sizes: tuple[Size, Size] | None = None
    """Smallest and largest diameter of things in image pixels. With it, every keypoint has a size of its own: things of
    several sizes are found in one image, scores tell an empty place by themselves, and a layer is decoded on a canvas
    that is placed at the thing's size."""
    window: Annotated[int, Field(ge=3, le=4095)] = 13
    """Side in image pixels of the window for non-maximum suppression and soft-argmax: about the size of a thing."""
    temperature: Positive = 0.2
    """Of the soft-argmax: smaller is harder."""
    count_border: bool = False
    """Authors' variant: cells outside the image weigh in the soft-argmax as score 0."""
    descriptor_read: Literal["bilinear", "truncated"] = "bilinear"
    """How the feature map is read at a location; `truncated` is the authors' variant."""
    descriptor_space: Literal["unit", "standardised"] = "unit"
    """Bring descriptors to unit length only, or to zero mean and unit deviation over the batch first."""
    variance: Positive = 0.05
    """Of the Gaussian that carries a descriptor into the decoder, in pixels of the feature map."""
    decode: Literal["plain", "layers"] = "plain"
    """One picture from all keypoints together, or one layer with transparency for each (which gives masks)."""
    layer_window: Annotated[int, Field(ge=8, le=4096)] | None = None
    """Decode a layer only in a window of this many image pixels around its keypoint."""
    background: Literal["none", "colour", "picture", "flat"] = "none"
    """Behind the layers: nothing, one learnt colour, one learnt picture (for a fixed camera) whose light follows each
    image, or the even grey of flat-field correction (`data.contrast: flat`). With one, keypoints may stay unused."""
    layer_base_colour: bool = False
    """Read the base colour of a layer straight from its descriptor, by a linear map. Norms in the decoder let little of
    a value's size through, so the layer's colour is wrong for long; and descriptors then tell colours apart."""
    prototypes: Annotated[tuple[Annotated[int, Field(ge=0, le=4095)], ...], Field(max_length=4096)] | None = None
    """The type of each prototype, where several make up one (`training.merge_types`); None: each is a type."""
    type_distance: Literal["norm", "mean-square"] = "norm"
    """Distance of a descriptor from a prototype; `mean-square` is the authors' variant."""
    type_scale: Positive = 1.0
    """Factor on that distance where it becomes a probability."""

    @property
    def multiple(self) -> int:
        """Image sides are padded to a multiple of this."""
        return self.stride << (self.levels - 1)

    @property
    def map_window(self) -> int:
        """The window in pixels of the feature map: odd, at least 3."""
        return self.window_on_map(self.window)

    def window_on_map(self, window: float) -> int:
        """A window in image pixels, in those of the feature map."""
        return max(3, 2 * round((window / self.stride - 1) / 2) + 1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.window % 2 == 0:
            raise ValueError(f"window must be odd, not {self.window}")
        deepest = self.width << (self.levels - 1)
        if deepest > _WIDEST:
            raise ValueError(f"width x 2^(levels-1) must be at most {_WIDEST}, not {deepest}")
        if self.layer_window is not None:
            if self.decode != "layers":
                raise ValueError("layer_window needs decode 'layers'")
            if self.layer_window % self.multiple:
                raise ValueError(f"layer_window must be a multiple of {self.multiple} (stride x 2^(levels-1))")
        if self.layer_base_colour and self.decode != "layers":
            raise ValueError("layer_base_colour needs decode 'layers'")
        if self.prototypes is not None and set(self.prototypes) != set(range(self.types)):
            raise ValueError("prototypes must name every type from 0 to types - 1")
        if self.sizes is not None:
            if self.sizes[0] >= self.sizes[1]:
                raise ValueError(f"sizes must be the smallest and then the largest, not {self.sizes}")
            if self.decode != "layers" or self.background != "flat":
                raise ValueError("sizes needs decode 'layers' and background 'flat'")
        if self.background != "none" and self.decode != "layers":
            raise ValueError("background needs decode 'layers'")
        return self


def most_peaks(height: int, width: int, window: int) -> int:
    """How many peaks of a `window` x `window` non-maximum suppression fit in a map of this size at the most."""
    apart = window // 2 + 1
    return -(-height // apart) * -(-width // apart)
