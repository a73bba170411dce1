"""Progress bars: in a terminal and in a notebook; nothing where nobody watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn


class Update(Protocol):
    """Tells a bar how much is done; `words` replace the text before it."""

    def __call__(self, done: int, total: int | None, words: str | None = None) -> None: ...


def stderr_console() -> Console:
    """Messages for people: stdout is for results. A notebook shows them below the cell."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def is_watched(console: Console) -> bool:
    """Whether a bar can be drawn: in a terminal or in a notebook."""
    return console.is_terminal or console.is_jupyter


def make_bar(console: Console, *columns: ProgressColumn, shown: bool = True, transient: bool = False) -> Progress:
    """A bar that is drawn only where somebody watches, and `shown`."""
    return Progress(*columns, console=console, disable=not (shown and is_watched(console)), transient=transient)


@contextmanager
def progress_bar(words: str = "", *, shown: bool = True) -> Iterator[Update]:
    """A bar for the time of a block, which is called with what is done and what there is."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with make_bar(stderr_console(), *columns, shown=shown, transient=True) as bar:
        task = bar.add_task(words, total=None)

        def update(done: int, total: int | None, words: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=words)

        yield update
