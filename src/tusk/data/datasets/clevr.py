"""`clevr6` and `clevr10`: made (`clevr_made`), a folder of scenes (`clevr_scenes`) or the file (`clevr_original`)."""

from __future__ import annotations

from pathlib import Path

from tusk.data.dataset import Dataset
from tusk.data.registry import Entry, Request, register


def _open(request: Request, split: str, fewest: int, most: int) -> Dataset:
    from tusk.data.datasets.clevr_made import ClevrMade
    from tusk.data.datasets.clevr_original import read_clevr
    from tusk.data.datasets.clevr_scenes import ClevrScenes

    size = request.size or 128
    if request.source is None:
        count = request.count or (50_000 if request.split == "train" else 10_000)
        return ClevrMade(
            split=request.half, count=count, seed=request.seed, size=size, min_objects=fewest, max_objects=most
        )
    source = Path(request.source)
    return ClevrScenes(source, split=split) if source.is_dir() else read_clevr(source, split, size=size)


def _open_clevr6(request: Request) -> Dataset:
    return _open(request, request.split, 3, 6)


def _open_clevr10(request: Request) -> Dataset:
    return _open(request, "clevr10", 7, 10)


_ORIGIN = "made, a scenes folder, or the TFRecord file"
register(Entry("clevr6", "scenes of 3 to 6 solids", _ORIGIN, True, _open_clevr6))
register(Entry("clevr10", "scenes of up to 10 solids", _ORIGIN, True, _open_clevr10))
