"""The logs of a run: metrics.jsonl, results.csv, and TensorBoard if asked for."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from tusk.errors import UsageError
from tusk.io import atomic_write
from tusk.training.trainer import StepReport


class RunLog:
    """`metrics.jsonl` has a line for every few steps, `results.csv` a row for every validation."""

    def __init__(self, folder: Path, *, resumed_at: int | None, tensorboard: bool = False) -> None:
        self._metrics_path = folder / "metrics.jsonl"
        self._results_path = folder / "results.csv"
        self._make_board = (lambda after: _board(folder, after)) if tensorboard else (lambda _: None)
        if resumed_at is not None:
            # What was logged after the checkpoint is done again: without this it would be there twice.
            self._forget_after(resumed_at)
        self._board = self._make_board(resumed_at)
        self._metrics = self._metrics_path.open("a", encoding="utf-8")

    def roll_back(self, step: int) -> None:
        """Forget the steps after this one: they were undone, and others take their place."""
        self.close()
        self._forget_after(step)
        self._board = self._make_board(step)
        self._metrics = self._metrics_path.open("a", encoding="utf-8")

    def step(self, report: StepReport) -> None:
        """A line for a step."""
        # Speed is not logged here: two runs with the same seed leave the same file.
        line = {"step": report.step, "progress": round(report.progress, 6), **report.losses}
        self._metrics.write(json.dumps(line) + "\n")
        self._metrics.flush()
        if self._board is not None:
            for name, value in report.losses.items():
                self._board.add_scalar(f"loss/{name}", value, report.step)

    def validation(self, step: int, values: dict[str, float]) -> None:
        """A row of figures; a second validation at the same step replaces the first."""
        rows = [row for row in self._rows() if int(row["step"]) != step]
        rows.append({"step": str(step), **{name: f"{value:.6g}" for name, value in values.items()}})
        self._write_rows(rows)
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"validation/{name}", value, step)

    def close(self) -> None:
        self._metrics.close()
        if self._board is not None:
            self._board.close()

    def _forget_after(self, step: int) -> None:
        if self._metrics_path.exists():
            kept = []
            for line in self._metrics_path.read_text(encoding="utf-8").splitlines(keepends=True):
                # A kill may have cut the last line short.
                if line.endswith("\n") and json.loads(line)["step"] <= step:
                    kept.append(line)
            atomic_write(self._metrics_path, "".join(kept).encode())
        self._write_rows([row for row in self._rows() if int(row["step"]) <= step])

    def _rows(self) -> list[dict[str, str]]:
        if not self._results_path.exists():
            return []
        with self._results_path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def _write_rows(self, rows: list[dict[str, str]]) -> None:
        names = list(dict.fromkeys(name for row in rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        if rows or self._results_path.exists():
            atomic_write(self._results_path, text.getvalue().encode())


def _board(folder: Path, after: int | None) -> Any:
    """after: what the board shows of later steps is taken away."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        fix = "install tusk with its 'track' extra: pip install 'tusk-keypoints[track]'"
        raise UsageError("--tensorboard", "tensorboard is not installed", fix) from error
    return SummaryWriter(str(folder / "tensorboard"), purge_step=None if after is None else after + 1)
