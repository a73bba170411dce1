"""All parts together, and the rules that tie them."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from tusk.config.base import Part, value_at
from tusk.config.data import DataConfig
from tusk.config.losses import ForegroundConfig, LossesConfig, OpacityConfig
from tusk.config.model import ModelConfig
from tusk.config.training import TrainingConfig


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
