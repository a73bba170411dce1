"""All parts together, and the rules that tie them."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from tusk.config.base import Part, value_at
from tusk.config.data import DataConfig
from tusk.config.detection import DetectionConfig
from tusk.config.losses import ForegroundConfig, LossesConfig, OpacityConfig
from tusk.config.model import ModelConfig
from tusk.config.training import TrainingConfig


class Config(Part):
    """Everything that a run depends on."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    losses: LossesConfig = LossesConfig()
    training: TrainingConfig = TrainingConfig()
    detection: DetectionConfig = DetectionConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        losses, training = self.losses, self.training
        if training.window is not None and value_at(training.window, 1.0) != self.model.window:
            raise ValueError(
                f"training.window must end at model.window, {self.model.window}; for use, set detection.window"
            )
        if training.reassign_by_appearance and (training.prototype_start != "spectral" or not training.memory):
            raise ValueError(
                "training.reassign_by_appearance needs prototype_start 'spectral' and a memory: they find islands"
            )
        if losses.opacity != OpacityConfig() and self.model.background == "none":
            raise ValueError("losses.opacity needs model.background: without one, layers have to cover everything")
        if losses.foreground != ForegroundConfig() and self.model.background == "none":
            raise ValueError("losses.foreground needs model.background: it compares the image with that")
        if training.micro_batch is not None and (
            self.model.descriptor_space == "standardised"
            or losses.equivariance.features == "standardised"
            or losses.mutual_information.weight != 0
            or losses.info_nce.weight != 0
            or losses.reconstruction.relative
        ):
            raise ValueError(
                "training.micro_batch needs losses that split over images: not standardised descriptors or features, "
                "nor a relative reconstruction error, contrast or mutual information"
            )
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
        if detection.merge_fragments_above is not None and model.background == "none":
            raise ValueError(
                "detection.merge_fragments_above needs model.background: without one, other layers cover every pixel"
            )
        return self
