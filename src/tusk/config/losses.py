"""The settings of the losses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tusk.config.base import Count, Fraction, NotNegative, Part, Positive, Schedule


class ReconstructionConfig(Part):
    """How well the image is painted again."""

    kind: Literal["mse", "perceptual"] = "mse"
    weight: Schedule = 1.0
    views: Literal["both", "first"] = "both"
    """Paint both views of a pair, as in the paper, or the first only, which saves half of the decoder's time."""
    relative: bool = False
    """Count the error as a share of the images' variance: then it weighs alike for dark, pale and contrasty images."""
    vgg16: Path | None = None
    """File with the weights of VGG16 for the perceptual loss."""


class KMeansConfig(Part):
    """Pulls descriptors towards their nearest prototype."""

    weight: Schedule = 0.01
    scale: Schedule = 1.0
    """Factor on the distance, as `model.type_scale`."""


class EquivarianceConfig(Part):
    """What is seen must move with the image."""

    score_weight: Schedule = 0.01
    feature_weight: Schedule = 100.0
    features: Literal["raw", "unit", "standardised"] = "raw"
    """`raw` is the paper's form, which can be lowered by shrinking the features; the others cannot."""
    masked: bool = True
    """Leave out targets that come from outside the frame (the authors do not)."""


class PrototypesConfig(Part):
    """What the prototypes themselves follow."""

    kind: Literal["sliced-wasserstein", "k-means", "vector-quantisation"] = "sliced-wasserstein"
    """The paper's loss, or one of the two alternatives of its ablation."""
    projections: Count = 100
    noise: NotNegative = 0.02
    """Deviation of the samples around a prototype."""
    rounding: Literal["largest-remainder", "authors"] = "largest-remainder"
    """How mixture weights become whole numbers of samples."""
    extra_mixing: NotNegative = 0.0
    """Added to every prototype's share; the authors add 0.01."""


class MutualInformationConfig(Part):
    """Types should be the same in both views, confident, and all in use."""

    weight: Schedule = 0.0
    temperature: Positive = 0.1
    memory: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """How much of the joint distribution of types is that of earlier batches: a single batch counts it only roughly."""
    neighbours: Fraction = 0.0
    """How much of it is asked of a keypoint and the one most like it in other images (of `training.memory`), instead
    of the same keypoint in two views: what is much alike should be of one type, even where no warp leads from one to
    the other."""
    evenness: NotNegative = 1.0
    """Weight of the even use of types; lower it where types are of very uneven frequency."""


class OpacityConfig(Part):
    """Layers should be clear where the background does as well, so that masks end where things end."""

    weight: Schedule = 0.0
    """Of the share of the image that layers cover."""
    binarity: Schedule = 0.0
    """Of cover x (1 - cover): a pixel should belong to the background or to layers, not half to each. Before black, a
    dim pixel can else be painted as a bright one that is mostly clear."""


class ForegroundConfig(Part):
    """Scores should be high where the background alone does not explain the image."""

    weight: Schedule = 0.0
    window: Annotated[int, Field(ge=3)] | None = None
    """What is unexplained is blurred over a window of this many image pixels; None: over `model.window`."""


class UniformRegionConfig(Part):
    """A keypoint on flat ground, where half a window around it has one colour, marks nothing: its score should be low,
    and it is of no type. Nothing else tells: it is painted rightly, and the thing that is missed for it has no keypoint
    that could learn from that."""

    weight: Schedule = 0.0


class InfoNCEConfig(Part):
    """A keypoint should be known again in the other view among all keypoints of the batch."""

    weight: Schedule = 0.0
    temperature: Positive = 0.2
    neighbours: Schedule = 0.0
    """How much of it is asked of the keypoint most like it in other images (of `training.memory`) in place of its own
    other view: what it shares with its like is what kind of thing it is, where two views share every detail."""


class PseudoLabelsConfig(Part):
    """A keypoint's type should be the group of most of its nearest in memory, once groups have been found. Clusters need
    not be round: by their mean direction alone, many descriptors would belong to another."""

    weight: Schedule = 0.0
    temperature: Positive = 0.1


class LossesConfig(Part):
    """All that training lowers."""

    reconstruction: ReconstructionConfig = ReconstructionConfig()
    kmeans: KMeansConfig = KMeansConfig()
    equivariance: EquivarianceConfig = EquivarianceConfig()
    prototypes: PrototypesConfig = PrototypesConfig()
    info_nce: InfoNCEConfig = InfoNCEConfig()
    pseudo_labels: PseudoLabelsConfig = PseudoLabelsConfig()
    opacity: OpacityConfig = OpacityConfig()
    foreground: ForegroundConfig = ForegroundConfig()
    uniform_region: UniformRegionConfig = UniformRegionConfig()
    mutual_information: MutualInformationConfig = MutualInformationConfig()
