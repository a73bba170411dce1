"""The display of a training: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from tusk.progress import is_watched
from tusk.training.trainer import StepReport
from tusk.training.validation import ValidationFigures

_LINE_EVERY = 30.0  # seconds, where there is no terminal


class ProgressDisplay:
    """Writes to stderr, so that stdout stays for results."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._speed: float | None = None
        self._last_line = time.monotonic()
        columns = (
            TextColumn("step {task.fields[step]}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
        )
        self._live = is_watched(console) and not quiet
        self._bar = Progress(*columns, console=console, disable=not self._live)
        self._task = self._bar.add_task("", total=1.0, step=0, words="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def step(self, report: StepReport, steps: int, seconds: float) -> None:
        """After every step."""
        # A moving mean: single steps differ with whatever else the machine does.
        speed = report.images_per_second
        self._speed = speed if self._speed is None else 0.95 * self._speed + 0.05 * speed
        losses = "  ".join(f"{name} {value:.4f}" for name, value in report.losses.items() if value)
        words = f"{self._speed:.0f} images/s  {losses}"
        progress = max(report.progress, report.step / steps)
        self._bar.update(self._task, completed=progress, step=report.step, words=words)
        if not self._live and time.monotonic() - self._last_line > _LINE_EVERY:
            self._last_line = time.monotonic()
            self.say(f"step {report.step}, {progress:.0%}, {seconds / 60:.1f} min: {words}")

    def validation(self, step: int, figures: ValidationFigures, types: int, by_labels: dict[str, float]) -> None:
        """After every validation; `by_labels` is for display only."""
        self.say(f"step {step}: {figures.words(types)}")
        if by_labels:
            words = ", ".join(f"{name} {value:.1%}" for name, value in by_labels.items())
            self.say(f"step {step}: {words} (by the labels, for display only)")

    def say(self, words: str) -> None:
        if not self._quiet:
            self._console.print(words, highlight=False, soft_wrap=True, markup=False)
