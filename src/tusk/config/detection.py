"""How keypoints are detected once the network is trained."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tusk.config.base import Part, Positive


class DetectionConfig(Part):
    """How keypoints are detected once the network is trained; nothing here changes the training."""

    window: Annotated[int, Field(ge=3, le=4095)] | None = None
    """Side in image pixels of the window for non-maximum suppression and soft-argmax; None: `model.window`."""
    relocate_keypoints: Annotated[int, Field(ge=0, le=4096)] = 0
    """Up to so many keypoints of an image are moved to where the reconstruction error is largest, if that lowers it
    enough."""
    merge_fragments_above: Annotated[float, Field(gt=0, le=2)] | None = None
    """A keypoint is a fragment of its neighbour's object where the share of its pixels that other layers would cover
    and the share of its edge along that neighbour add up to this. None: every keypoint is an object of its own."""
    mask_tolerance: Positive | None = None
    """Masks give a pixel to the layer whose share in it and whose colour fit best; this is by how much a fitting colour
    usually differs. None: by the shares alone, as in the paper."""
    min_score: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Least score of a detection."""
    min_explained: float = 0.0
    """With `model.sizes`: a keypoint is left out where, in the mean over the pixels that it covers, it lowers the
    squared error by less than this share of what parts a thing from the background."""
    suppression: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(le=4)]] | None = None
    """With `model.sizes`: soft non-maximum suppression. A better keypoint nearby lowers a score, to 0 at the first
    distance and not at all from the second on, both in radii of the larger one; `min_score` comes after that."""
    usual_size: Positive | None = None
    """With `model.sizes`: the diameter of a usual thing in pixels of the network's input. A smaller one shows fewer
    pixels to judge by, and its score is lowered by the root of its share of that; `min_score` comes after it."""
    views: Literal[1, 2, 4] = 1
    """Scores and sizes are means over the image and its mirror images: left for right (2), upside down too (4)."""
    min_gain: float | None = None
    """Least gain of a detection: by how much its keypoint lowers the reconstruction error. None: as training found it
    and stored it with the model."""

    @model_validator(mode="after")
    def _odd(self) -> Self:
        if self.window is not None and self.window % 2 == 0:
            raise ValueError(f"window must be odd, not {self.window}")
        if self.suppression is not None and self.suppression[0] >= self.suppression[1]:
            raise ValueError("suppression must rise: its first distance is below its second")
        return self
