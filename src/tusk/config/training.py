"""How the network is trained, and the random warps of its two views."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tusk.config.base import Count, CountOrNone, Fraction, NotNegative, Part, Positive, Schedule


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
    surroundings: tuple[Fraction, Fraction] | None = None
    """Keep only a random window of the image whose sides are between these shares of the image's, and show another part
    of the image around it: an object must then be recognised by itself, not by where it lies and what is
    beside it."""
    border: Literal["black", "white", "reflect"] = "reflect"
    """What lies outside the frame."""


class TrainingConfig(Part):
    """How it is trained."""

    batch: Annotated[int, Field(ge=2, le=10**6)] = 32
    """Images in a step, both views of each pair counted."""
    micro_batch: Annotated[int, Field(ge=2, le=10**6)] | None = None
    """Work through the batch in parts of this many images: the same result in less memory, where no loss needs the
    whole batch at once."""
    steps: Count = 4200
    minutes: Positive | None = None
    """Stop after this time at the latest: schedules follow the clock where it is ahead of the steps."""
    checkpoint_every: Count = 200
    """Steps between two checkpoints."""
    keep_every: CountOrNone = 0
    """Checkpoints at multiples of this many steps are kept, beside the last and the best; 0 for none."""
    evaluate_every: Count = 500
    """Steps between two validations."""
    selection: Literal["best", "last"] = "best"
    """Which weights become the model: those of the validation with the best score, which needs no labels, or those at
    the end."""
    workers: CountOrNone | None = None
    """Processes that load images ahead, for each process that trains; 0 loads them in the training's own. None: 0 on
    the CPU, which they would take from the training, and up to 8 for each GPU."""
    learning_rate: Positive = 1e-3
    learning_rate_shape: Literal["constant", "one-cycle"] = "constant"
    learning_rate_rise: Fraction = 0.3
    """Share of the training in which a one-cycle learning rate rises to its peak."""
    start_at_mean: bool = False
    """Let the decoder start with the mean colour of the first images, instead of having to find it slowly."""
    variance: Schedule | None = None
    """Of the Gaussian in the course of training; without it `model.variance` throughout."""
    window: Schedule | None = None
    """`model.window` in the course of training; without it the same throughout. A wide one at first keeps two keypoints
    off one object until each object has its own; a narrow one then lets objects that touch have one each."""
    prototype_steps: CountOrNone = 8
    """Steps on the prototypes after each step on the network."""
    prototype_learning_rate: Positive = 0.1
    prototype_start: Literal["random", "k-means", "spectral"] = "random"
    """Prototypes start at random, or from clusters of descriptors once the warm-up is over: those of k-means, or
    those of spectral clustering, which follows chains of neighbours and so finds clusters that are not round."""
    prototype_restarts: tuple[Fraction, ...] = ()
    """At these shares of the training, prototypes are set in the same way again."""
    reassign_by_appearance: bool = False
    """When prototypes start from `spectral` clusters, let the appearance of objects in the image correct them: where
    training has drawn some objects so close together that hardly any neighbour leads from them to others, chance would
    say which cluster they are in."""
    merge_types: bool = False
    """At the end, put prototypes together that other clusterings and views do not tell apart: `model.types` is then how
    many there are at the most, and training says how many there are."""
    restart_dead_every: CountOrNone = 0
    """Steps after which types that hardly any keypoint has take over half of the most scattered type; 0 for never. It
    ends after three quarters of the training, so that the types can settle."""
    warm_up: Fraction = 0.0
    """Share of the training before the prototypes start."""
    memory: CountOrNone = 0
    """How many of the latest descriptors are kept for k-means and for the prototypes' loss beside the batch's own."""
    alternate: bool = True
    """Train network and prototypes in turns (the paper); otherwise both in one step, as in its ablation."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the U-Nets, where nearly all of the arithmetic is; scores, descriptors, prototypes and losses are always
    float32. `auto` is bfloat16 on GPUs that have it, and float32 elsewhere."""
    recompute: bool = False
    """Compute the maps inside the U-Nets once more for their gradients instead of keeping them: much less memory, and
    about a third more time."""
    compile: bool = False
    """Let torch compile encoder and decoder: a minute at the start, then faster steps where a compiler is at hand."""
    clip: Positive = 10.0
    """Largest norm of the gradient of all weights together."""
    first_warp: WarpConfig = WarpConfig(scale=0.98, scale_jitter=0.02, tps=0.03, shift=0.02, rotation=0.05)
    """Makes the first view from the image."""
    second_warp: WarpConfig = WarpConfig(scale=0.95, scale_jitter=0.05, tps=0.1, shift=0.01, rotation=0.25)
    """Makes the second view from the first."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if self.batch % 2:
            raise ValueError(f"batch must be even (pairs of views), not {self.batch}")
        if self.micro_batch is not None and self.micro_batch % 2:
            raise ValueError(f"micro_batch must be even (pairs of views), not {self.micro_batch}")
        return self
