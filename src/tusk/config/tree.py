"""All parts together, and the rules that tie them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from tusk.config.base import Part, value_at
from tusk.config.data import DataConfig
from tusk.config.detection import DetectionConfig
from tusk.config.losses import LossesConfig, contains_losses, load_losses
from tusk.config.model import ModelConfig
from tusk.config.renames import upgrade
from tusk.config.training import TrainingConfig


class Config(Part):
    """Everything that a run depends on."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    losses: LossesConfig = Field(default_factory=LossesConfig)
    training: TrainingConfig = TrainingConfig()
    detection: DetectionConfig = DetectionConfig()

    def __init__(self, **values: Any) -> None:
        load_losses()
        super().__init__(**values)

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        load_losses()
        return super().model_validate(obj, **options)

    @classmethod
    def from_stored(cls, values: Mapping[str, Any]) -> Self:
        """The configuration that is stored with a model, whatever its age.

        Former names are taken silently: whoever loads a model did not write them. Settings of a loss that is not
        registered here are left out: the model was trained with it, but does not need it any more.
        """
        load_losses()
        upgraded, _ = upgrade(values)
        losses = upgraded.get("losses")
        if isinstance(losses, dict):
            upgraded["losses"] = {name: each for name, each in losses.items() if name in LossesConfig.model_fields}
        return cls.model_validate(upgraded)

    @model_validator(mode="after")
    def _trainable(self) -> Self:
        training = self.training
        if training.window is not None and value_at(training.window, 1.0) != self.model.window:
            raise ValueError(
                f"training.window must end at model.window, {self.model.window}; for use, set detection.window"
            )
        if training.reassign_by_appearance and (training.prototype_start != "spectral" or not training.memory):
            raise ValueError("training.reassign_by_appearance needs training.prototype_start 'spectral' and a memory")
        return self

    @model_validator(mode="after")
    def _losses_fit(self) -> Self:
        for name, settings in self.losses.used().items():
            if (why := settings.refusal(self.model)) is not None:
                raise ValueError(f"losses.{name} {why}")
        if self.training.micro_batch is None:
            return self
        whole = [f"losses.{name}" for name, each in self.losses.used().items() if not each.splits_over_images()]
        if self.model.descriptor_space == "standardised":
            whole.append("model.descriptor_space 'standardised'")
        if whole:
            raise ValueError(f"training.micro_batch cannot be used: the whole batch is needed for {', '.join(whole)}")
        return self

    @model_validator(mode="after")
    def _detectable(self) -> Self:
        detection, model = self.detection, self.model
        if detection.mask_tolerance is not None and model.decode != "layers":
            raise ValueError("detection.mask_tolerance needs model.decode 'layers': there are no masks without them")
        if detection.relocate_keypoints and model.background == "none":
            raise ValueError(
                "detection.relocate_keypoints needs model.background: without one, some layer covers every pixel"
            )
        if detection.relocate_keypoints and model.sizes is not None:
            raise ValueError("detection.relocate_keypoints needs a model without model.sizes: a moved one has no size")
        if detection.merge_fragments_above is not None and model.background == "none":
            raise ValueError(
                "detection.merge_fragments_above needs model.background: without one, other layers cover every pixel"
            )
        return self


contains_losses(Config)
