"""Every number that the detection chain depends on, in one place: a model's own, with what is given in its stead."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pydantic import ValidationError

from tusk.config import Config, DetectionConfig
from tusk.errors import UsageError
from tusk.model.storage import StoredModel


@dataclass(frozen=True)
class DetectionSettings:
    """See `tusk.config.DetectionConfig` for what each of them does."""

    keypoints: int
    window: int
    relocate_keypoints: int = 0
    mask_tolerance: float | None = None
    merge_fragments_above: float | None = None
    min_score: float = 0.0
    min_gain: float = 0.0
    min_explained: float = 0.0
    suppression: tuple[float, float] | None = None
    usual_size: float | None = None
    views: int = 1

    def __post_init__(self) -> None:
        if self.keypoints < 1:
            raise UsageError("keypoints", f"{self.keypoints} cannot be detected", "give 1 or more")
        if not 0 <= self.min_score <= 1:
            raise UsageError("min_score", f"{self.min_score:g} is no score", "give a number from 0 to 1")
        if math.isnan(self.min_gain):
            raise UsageError("min_gain", "it is not a number", "give one, such as 0 or 2.5")

    def every_keypoint(self) -> DetectionSettings:
        """The same with nothing left out for its score or gain."""
        return replace(
            self, min_score=0.0, min_gain=-math.inf, min_explained=-math.inf, suppression=None, usual_size=None
        )


def settings_from(config: Config, least_gain: float | None = None) -> DetectionSettings:
    """A configuration's own, with the least gain that training found.

    None: the network is still in training, and knows none yet. Then every keypoint counts.
    """
    detection = config.detection
    known = least_gain if detection.min_gain is None else detection.min_gain
    return DetectionSettings(
        keypoints=config.model.keypoints,
        window=detection.window or config.model.window,
        relocate_keypoints=detection.relocate_keypoints,
        mask_tolerance=detection.mask_tolerance,
        merge_fragments_above=detection.merge_fragments_above,
        min_score=detection.min_score,
        min_gain=-math.inf if known is None else known,
        min_explained=detection.min_explained,
        suppression=detection.suppression,
        usual_size=detection.usual_size,
        views=detection.views,
    )


def settings_of(
    model: StoredModel,
    keypoints: int | None = None,
    min_score: float | None = None,
    min_gain: float | None = None,
    detection: DetectionConfig | None = None,
) -> DetectionSettings:
    """A stored model's settings; `detection` takes the place of the stored `detection.*`.

    The least gain is the first of: the one given, `detection.min_gain`, and what training found and stored.
    """
    config = model.config if detection is None else _with(model.config, detection)
    settings = settings_from(config, model.least_gain)
    return replace(
        settings,
        keypoints=settings.keypoints if keypoints is None else keypoints,
        min_score=settings.min_score if min_score is None else min_score,
        min_gain=settings.min_gain if min_gain is None else min_gain,
    )


def _with(config: Config, detection: DetectionConfig) -> Config:
    """Refused where the model cannot do it: relocation without a background, masks without layers."""
    try:
        return Config.model_validate({**config.model_dump(), "detection": detection.model_dump()})
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError("detection", why, "leave that setting out, or use a model that has it") from error
