"""The whole configuration: one tree of frozen models that presets, YAML files, flags and Python share.

Every value is checked when the tree is made; `tusk.presets` finds and merges the sources.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Fraction = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]

# A value that may change in the course of training: a number, or points (share of training done, value) that are
# joined by straight lines.
Schedule = float | tuple[tuple[float, float], ...]


def value_at(schedule: Schedule, progress: float) -> float:
    """The schedule's value when `progress` (0 to 1) of the training is done."""
    if isinstance(schedule, int | float):
        return float(schedule)
    before = schedule[0]
    for after in schedule:
        if progress < after[0]:
            if after is schedule[0]:
                break
            share = (progress - before[0]) / (after[0] - before[0])
            return before[1] + share * (after[1] - before[1])
        before = after
    return before[1]


class Part(BaseModel):
    """Common to all parts: frozen, no unknown keys, no NaN, the text under a field is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @field_validator("*")
    @classmethod
    def _schedule_in_order(cls, value: object) -> object:
        if isinstance(value, tuple) and value and isinstance(value[0], tuple):
            places = [point[0] for point in value]
            if places != sorted(set(places)) or places[0] < 0 or places[-1] > 1:
                raise ValueError("the points of a schedule must lie between 0 and 1, in rising order")
        return value


class DataConfig(Part):
    """Which images, and how they come to the network's size."""

    dataset: str = "folder"
    """A dataset that tusk knows by name, or `folder` for your own pictures."""
    source: Path | None = None
    """Folder, file, glob or list that the images come from; not needed where tusk makes them."""
    size: Annotated[int, Field(ge=8, le=4096)] = 80
    """Side in pixels of the square images that the network sees."""
    fit: Literal["letterbox", "centre-crop", "random-crop", "pad", "pieces"] = "centre-crop"
    """How an image comes to that size; `pad` sets a small one, unscaled, in a black square. `pieces` cuts a large
    picture of your own, unscaled, into squares: `model.keypoints` is then for one square, and a picture in use is
    looked at in squares that overlap."""
    scale: Annotated[float, Field(gt=0, le=16)] = 1.0
    """Pictures are scaled by this before they are cut into pieces, so that things come to about `model.window`."""
    contrast: Literal["own", "full"] = "own"
    """Leave the brightness of a picture as it is, or make its darkest pixels black and its brightest white: pictures of
    unlike exposure then weigh alike in training, and their gains can be compared."""
    grey: bool = False
    """Throw the colours away."""


class WarpConfig(Part):
    """A random smooth deformation, in units of half an image."""

    scale: Positive = 1.0
    """Mean scale of the sampling grid: below 1 enlarges the content."""
    scale_jitter: NotNegative = 0.0
    """Scale is uniform in scale +- this."""
    tps: NotNegative = 0.0
    """Each control point of the thin-plate spline moves by up to this."""
    shift: NotNegative = 0.0
    """Scale and rotation are about points that lie up to this off the centre."""
    rotation: NotNegative = 0.0
    """Rotation is uniform in +- this many radians."""
    translate: NotNegative = 0.0
    """The whole image moves by up to this in x and in y: without it, a place in the image can pass for a type."""
    colour_jitter: Fraction = 0.0
    """Brightness, contrast, saturation and (a tenth of it) hue change by up to this share."""
    surroundings: tuple[Fraction, Fraction] | None = None
    """Keep only a random window of the image whose sides are between these shares of the image's, and show another part
    of the image around it: a thing must then be known again by itself, not by where it lies and what lies beside it."""
    holes: tuple[Count, Fraction] | None = None
    """Hide this many squares of the image, of up to this share of its sides: a thing must then be known again by any of
    its parts."""
    border: Literal["black", "white", "reflect"] = "reflect"
    """What stands outside the frame. Holes have the same colour; with `reflect` it is the image's mean."""


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
    layer_tint: bool = False
    """Read the base colour of a layer straight from its descriptor, by a linear map. Norms in the decoder let little of
    a value's size through, so it paints the wrong colour for long; and descriptors then tell colours apart."""
    mask_tolerance: Positive | None = None
    """Masks give a pixel to the layer whose share in it and whose colour fit best; this is by how much a fitting colour
    may usually differ. None: by the shares alone, as in the paper."""
    second_looks: Annotated[int, Field(ge=0)] = 0
    """In use, up to so many keypoints of an image are put where it is least well painted, if that mends enough."""
    join_parts: Annotated[float, Field(gt=0, le=2)] | None = None
    """In use, a keypoint is a part of its neighbour's thing where the share of its pixels that other layers would cover
    and the share of its edge along that neighbour add up to this. None: every keypoint is a thing of its own."""
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
        if self.mask_tolerance is not None and self.decode != "layers":
            raise ValueError("mask_tolerance needs decode 'layers': there are no masks without them")
        if self.layer_window is not None:
            if self.decode != "layers":
                raise ValueError("layer_window needs decode 'layers'")
            if self.layer_window % self.multiple:
                raise ValueError(f"layer_window must be a multiple of {self.multiple} (stride x 2^(levels-1))")
        if self.layer_tint and self.decode != "layers":
            raise ValueError("layer_tint needs decode 'layers'")
        if self.background != "none" and self.decode != "layers":
            raise ValueError("background needs decode 'layers'")
        if self.background == "none":
            if self.second_looks:
                raise ValueError("second_looks need a background: without one, every pixel is painted by some layer")
            if self.join_parts is not None:
                raise ValueError("join_parts needs a background: without one, other layers cover every pixel")
        return self


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
    halves: Schedule = 0.0
    """Of cover x (1 - cover): a pixel should belong to the background or to layers, not half to each. Before black, a
    dim pixel can else be painted as a bright one that is mostly clear."""


class ForegroundConfig(Part):
    """Scores should be high where the background alone does not explain the image."""

    weight: Schedule = 0.0
    window: Annotated[int, Field(ge=3)] | None = None
    """What is unexplained is blurred over a window of this many image pixels; None: over `model.window`."""


class FlatConfig(Part):
    """A keypoint on flat ground, where half a window around it has one colour, marks nothing: its score should be low,
    and it is of no type. Nothing else tells: it is painted rightly, and the thing that is missed for it has no keypoint
    that could learn from that."""

    weight: Schedule = 0.0


class ContrastConfig(Part):
    """A keypoint should be known again in the other view among all keypoints of the batch."""

    weight: Schedule = 0.0
    temperature: Positive = 0.2
    neighbours: Schedule = 0.0
    """How much of it is asked of the keypoint most like it in other images (of `training.memory`) in place of its own
    other view: what it shares with its like is what kind of thing it is, where two views share every detail."""


class VotesConfig(Part):
    """A keypoint's type should be the group of most of its nearest in memory, once groups have been found. Groups need
    not be round: by their mean direction alone, many descriptors would belong to another."""

    weight: Schedule = 0.0
    temperature: Positive = 0.1


class LossesConfig(Part):
    """All that training lowers."""

    reconstruction: ReconstructionConfig = ReconstructionConfig()
    kmeans: KMeansConfig = KMeansConfig()
    equivariance: EquivarianceConfig = EquivarianceConfig()
    prototypes: PrototypesConfig = PrototypesConfig()
    contrast: ContrastConfig = ContrastConfig()
    votes: VotesConfig = VotesConfig()
    opacity: OpacityConfig = OpacityConfig()
    foreground: ForegroundConfig = ForegroundConfig()
    flat: FlatConfig = FlatConfig()
    mutual_information: MutualInformationConfig = MutualInformationConfig()


class TrainingConfig(Part):
    """How it is trained."""

    batch: Annotated[int, Field(ge=2)] = 32
    """Images in a step, both views of each pair counted."""
    micro_batch: Annotated[int, Field(ge=2)] | None = None
    """Work through the batch in parts of this many images: the same result in less memory, where no loss needs the
    whole batch at once."""
    steps: Count = 4200
    minutes: Positive | None = None
    """Stop after this time at the latest: schedules follow the clock where it is ahead of the steps."""
    checkpoint_every: Count = 200
    """Steps between two checkpoints."""
    keep_every: Annotated[int, Field(ge=0)] = 0
    """Checkpoints at multiples of this many steps are kept, beside the last and the best; 0 for none."""
    evaluate_every: Count = 500
    """Steps between two looks at the run's health."""
    workers: Annotated[int, Field(ge=0)] = 0
    """Processes that load images ahead; 0 loads them in the training's own."""
    learning_rate: Positive = 1e-3
    learning_rate_shape: Literal["constant", "one-cycle"] = "constant"
    learning_rate_rise: Fraction = 0.3
    """Share of the training in which a one-cycle learning rate rises to its peak."""
    start_at_mean: bool = False
    """Let the decoder start by painting the mean colour of the first images, instead of having to find it slowly."""
    variance: Schedule | None = None
    """Of the Gaussian in the course of training; without it `model.variance` throughout."""
    window: Schedule | None = None
    """`model.window` in the course of training; without it the same throughout. A wide one at first keeps two keypoints
    off one thing until each thing has its own; a narrow one then lets things that touch have one each."""
    prototype_steps: Annotated[int, Field(ge=0)] = 8
    """Steps on the prototypes after each step on the network."""
    prototype_learning_rate: Positive = 0.1
    prototype_start: Literal["random", "k-means", "spectral"] = "random"
    """Prototypes start at random, or from groups of descriptors once the warm-up is over: those of k-means, or those
    of spectral clustering, which follows chains of neighbours and so finds groups that are not round."""
    prototype_restarts: tuple[Fraction, ...] = ()
    """At these shares of the training, prototypes are set in the same way again."""
    islands_by_looks: bool = False
    """When prototypes start from groups of `spectral` clustering, let what things look like in the picture decide on
    islands: some things that training has drawn so close together that hardly any neighbour leads from them to others.
    Chance would say whose type they are."""
    revive_every: Annotated[int, Field(ge=0)] = 0
    """Steps after which types that nothing is of take over half of the most scattered type; 0 for never. It ends with
    the first three quarters of the training, so that what is found can settle."""
    warm_up: Fraction = 0.0
    """Share of the training before the prototypes start."""
    memory: Annotated[int, Field(ge=0)] = 0
    """How many of the latest descriptors are kept for k-means and for the prototypes' loss beside the batch's own."""
    alternate: bool = True
    """Train network and prototypes in turns (the paper); otherwise both in one step, as in its ablation."""
    compile: bool = False
    """Let torch compile encoder and decoder: a minute at the start, then faster steps where a compiler is at hand."""
    clip: Positive = 10.0
    """Largest norm of a gradient."""
    first_warp: WarpConfig = WarpConfig(scale=0.98, scale_jitter=0.02, tps=0.03, shift=0.02, rotation=0.05)
    """Makes the first view from the image."""
    second_warp: WarpConfig = WarpConfig(scale=0.95, scale_jitter=0.05, tps=0.1, shift=0.01, rotation=0.25)
    """Makes the second view from the first."""
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if self.batch % 2:
            raise ValueError(f"batch must be even (pairs of views), not {self.batch}")
        if self.micro_batch is not None and self.micro_batch % 2:
            raise ValueError(f"micro_batch must be even (pairs of views), not {self.micro_batch}")
        return self


class Config(Part):
    """Everything that a run depends on."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    losses: LossesConfig = LossesConfig()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        losses, training = self.losses, self.training
        if training.window is not None and value_at(training.window, 1.0) != self.model.window:
            raise ValueError(
                f"training.window must end at model.window, {self.model.window}: that is the one in use after training"
            )
        if training.islands_by_looks and (training.prototype_start != "spectral" or not training.memory):
            raise ValueError(
                "training.islands_by_looks needs prototype_start 'spectral' and a memory: they find islands"
            )
        if losses.opacity != OpacityConfig() and self.model.background == "none":
            raise ValueError("losses.opacity needs model.background: without one, layers have to cover everything")
        if losses.foreground != ForegroundConfig() and self.model.background == "none":
            raise ValueError("losses.foreground needs model.background: it compares the image with that")
        if training.micro_batch is not None and (
            self.model.descriptor_space == "standardised"
            or losses.equivariance.features == "standardised"
            or losses.mutual_information.weight != 0
            or losses.contrast.weight != 0
            or losses.reconstruction.relative
        ):
            raise ValueError(
                "training.micro_batch needs losses that split over images: not standardised descriptors or features, "
                "nor a relative reconstruction error, contrast or mutual information"
            )
        return self
