"""The network."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tusk.config.base import Count, Part, Positive


class ModelConfig(Part):
    """The network."""

    keypoints: Count = 9
    """How many keypoints an image gives (K). May be another number in use."""
    types: Count = 10
    """How many types there are (M)."""
    channels: Count = 32
    """Length of a descriptor (C)."""
    width: Count = 32
    """Channels of the first level of the U-Nets; each deeper level doubles them."""
    levels: Annotated[int, Field(ge=1, le=6)] = 4
    """Levels of the U-Nets."""
    stride: Literal[1, 2, 4] = 1
    """The network runs at 1/stride of the image's size; locations stay in image pixels."""
    padding: Literal["zeros", "replicate"] = "zeros"
    """What the encoder sees beyond the image's edge. Zeros, as in the paper, tell it where the edge is: the corners of
    an image can then become keypoints, and places in it types."""
    window: Annotated[int, Field(ge=3)] = 13
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
    layer_window: Annotated[int, Field(ge=8)] | None = None
    """Decode a layer only in a window of this many image pixels around its keypoint."""
    background: Literal["none", "colour", "picture"] = "none"
    """Behind the layers: nothing, one learnt colour, or one learnt picture (for a camera that stands still) whose light
    follows each image. With one, keypoints may stay unused."""
    layer_base_colour: bool = False
    """Read the base colour of a layer straight from its descriptor, by a linear map. Norms in the decoder let little of
    a value's size through, so it paints the wrong colour for long; and descriptors then tell colours apart."""
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
        if self.layer_window is not None:
            if self.decode != "layers":
                raise ValueError("layer_window needs decode 'layers'")
            if self.layer_window % self.multiple:
                raise ValueError(f"layer_window must be a multiple of {self.multiple} (stride x 2^(levels-1))")
        if self.layer_base_colour and self.decode != "layers":
            raise ValueError("layer_base_colour needs decode 'layers'")
        if self.background != "none" and self.decode != "layers":
            raise ValueError("background needs decode 'layers'")
        return self
