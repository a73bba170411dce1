"""`tusk report RUN`: one page about what was learnt."""

from __future__ import annotations

import sys
from pathlib import Path

from tusk.cli.main import new_folder, prepare_torch
from tusk.errors import UsageError


def write_report(run: str, out: Path | None, data: str | None, count: int) -> None:
    """Look at the images and write the page; its path goes to stdout."""
    if count < 1:
        raise UsageError("--count", f"{count} is not a number of images", "give at least 1")
    if out is not None and out.is_dir():
        raise UsageError(str(out), "it is a folder", f"name a file, such as {out / 'report.html'}")
    prepare_torch()
    from tusk.report.build import make_page
    from tusk.report.page import write_page
    from tusk.report.subject import open_images, open_subject

    subject = open_subject(run)
    images = open_images(subject.config, data, count)
    page = make_page(subject, images)
    path = out or _place(run)
    try:
        write_page(path, page)
    except OSError as error:
        why = f"the page cannot be written ({error.strerror})"
        raise UsageError(str(path), why, "name another file with --out") from error
    for remark in page.remarks:
        if not remark.well:
            print(remark.words, file=sys.stderr)
    print(f"Open {path} in a browser.", file=sys.stderr)
    print(path)


def _place(run: str) -> Path:
    """In the run's own folder; a model by itself has none."""
    folder = Path(run)
    return (folder if folder.is_dir() else new_folder(Path("runs/report") / folder.stem)) / "report.html"
