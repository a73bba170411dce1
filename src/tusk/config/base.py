"""What all parts of the configuration share: bounds, schedules, strictness."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

Fraction = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
# Whole numbers have bounds, though wide ones: settings are also read from model files, which may come from anybody.
Count = Annotated[int, Field(ge=1, le=10**9)]
CountOrNone = Annotated[int, Field(ge=0, le=10**9)]

# A value that may change in the course of training: a number, or points (share of training done, value) that are
# joined by straight lines.
Schedule = float | Annotated[tuple[tuple[float, float], ...], Field(min_length=1)]


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
