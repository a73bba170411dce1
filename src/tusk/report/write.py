"""A page from start to end: open the images, detect in them, write the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tusk.errors import UsageError
from tusk.report.advice import Remark
from tusk.report.build import make_page
from tusk.report.page import write_page
from tusk.report.subject import Subject, open_images


@dataclass(frozen=True)
class Report:
    """A page that was written."""

    path: Path
    remarks: Sequence[Remark]  # how the model is doing


def write_report(subject: Subject, path: Path, data: str | None = None, count: int = 200) -> Report:
    """The page of a run or model, on images of `data` (a folder or a dataset's name) or of what it was trained for."""
    if count < 1:
        raise UsageError("--count", f"{count} is not a number of images", "give at least 1")
    if path.is_dir():
        raise UsageError(str(path), "it is a folder", f"name a file, such as {path / 'report.html'}")
    page = make_page(subject, open_images(subject.config, data, count))
    try:
        write_page(path, page)
    except OSError as error:
        why = f"the page cannot be written ({error.strerror})"
        raise UsageError(str(path), why, "name another file with --out") from error
    return Report(path, page.remarks)
