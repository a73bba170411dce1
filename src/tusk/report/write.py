"""A page from start to end: open the images, detect in them, write the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tusk.errors import UsageError
from tusk.report.build import make_page
from tusk.report.page import write_page
from tusk.report.remark import Remark, Verdict
from tusk.report.subject import Subject, open_images


@dataclass(frozen=True)
class Report:
    """A page that was written."""

    path: Path
    remarks: Sequence[Remark]  # how the model is doing
    verdict: Verdict | None = None  # all of them in one


def write_report(
    subject: Subject, path: Path, data: str | None = None, count: int = 200, *, trust_source: bool = False
) -> Report:
    """The page of a run or model, on images of `data` (a folder or a dataset's name) or of what it was trained for.

    trust_source: open the folder that a model file names, where that does not lie in its run's folder.
    """
    if count < 1:
        raise UsageError("--count", f"{count} is not a number of images", "give at least 1")
    if path.is_dir():
        raise UsageError(str(path), "it is a folder", f"name a file, such as {path / 'report.html'}")
    trusted = trust_source or subject.in_its_folder
    images = open_images(subject.config, data, count, subject.logs, trust_source=trusted)
    page = make_page(subject, images)
    try:
        write_page(path, page)
    except OSError as error:
        why = f"the page cannot be written ({error.strerror})"
        raise UsageError(str(path), why, "name another file with --out") from error
    return Report(path, page.remarks, page.verdict)
