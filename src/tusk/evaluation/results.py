"""The figures of an evaluation as Python users get them: by name, as a table, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tusk.evaluation.evaluate import Evaluation
from tusk.evaluation.figures import Figure


@dataclass(frozen=True)
class Figures(Mapping[str, float | None]):
    """What a model reaches on a dataset: `figures["both"]` is a value; `str(figures)` a table with the paper's."""

    model: str  # its name
    version: str  # of tusk
    evaluation: Evaluation

    @property
    def rows(self) -> tuple[Figure, ...]:
        """Every line of the table: name, value, unit, paper."""
        return self.evaluation.figures

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader has to know beside the figures."""
        return self.evaluation.notes

    @property
    def protocol(self) -> str:
        """How it is measured, in words."""
        return self.evaluation.protocol

    def __getitem__(self, name: str) -> float | None:
        return self._by_name()[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name())

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what stands in metrics.json."""
        values = asdict(self.evaluation)
        values["figures"] = {
            name: {"value": row.value, "unit": row.unit, "paper": row.paper} for name, row in self._by_name().items()
        }
        return {"tusk": self.version, "model": self.model, **values}

    def __str__(self) -> str:
        """The table beside the paper's figures, and the notes."""
        cells = [("in %", self.model, "the paper")]
        cells += [(row.name, _cell(row, row.value), _cell(row, row.paper)) for row in self.rows]
        wide = [max(len(line[column]) for line in cells) for column in range(3)]
        lines = [f"{name:<{wide[0]}} {own:>{wide[1]}} {paper:>{wide[2]}}".rstrip() for name, own, paper in cells]
        found = self.evaluation
        lines.append(
            f"{found.data}, {found.split}, {found.images} images, seed {found.seed}, {found.keypoints} keypoints, "
            f"{found.types} types, {found.minutes:.2f} minutes"
        )
        lines.append(f"Measure: {found.protocol}.")
        lines += (f"Note: {note}." for note in found.notes)
        return "\n".join([*lines, f"The paper's figures: {found.paper}."])

    def _by_name(self) -> dict[str, Figure]:
        return {row.name.strip(): row for row in self.rows}


def _cell(row: Figure, value: float | None) -> str:
    if value is None:
        return ""
    unit = "" if row.unit == "%" else f" {row.unit}"
    return f"{value:.{row.decimals}f}{unit}"
