"""The lines of an evaluation's table, and all that is said about them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    value: float | None  # None where it cannot be measured
    unit: str = "%"
    decimals: int = 1
    paper: float | None = None


@dataclass(frozen=True)
class Measured:
    """What one measure gives."""

    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()  # what a reader has to know beside them


def percent(share: float | None) -> float | None:
    """A share from 0 to 1 in percent; None where there is none."""
    return None if share is None or math.isnan(share) else 100 * share
