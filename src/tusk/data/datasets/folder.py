"""`folder`: your own pictures."""

from __future__ import annotations

from tusk.data.dataset import Dataset
from tusk.data.registry import Entry, Request, register
from tusk.errors import UsageError


def _open(request: Request) -> Dataset:
    from tusk.data.folder import FolderDataset

    if request.source is None:
        raise UsageError("data.source", "no pictures were named", "give a folder, a file, a pattern or a list of files")
    return FolderDataset(
        (request.source, *request.more),
        size=request.size or 80,
        fit=request.fit,
        scale=request.scale,
        contrast=request.contrast,
        grey=request.grey,
        seed=request.seed,
        frames=request.frames,
        progress=request.progress,
    )


register(Entry("folder", "your own pictures", "a folder, file, glob or list", False, _open, framed=True))
