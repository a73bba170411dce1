"""Detection over any number of files: in parts, by any number of processes, whatever happens in between."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tusk.data.picture_framing import FittedPicture
from tusk.data.sources import Source
from tusk.detection.detections import Detections
from tusk.detection.ledger import Ledger
from tusk.detection.predictor import Predictor
from tusk.detection.records import Record, Totals, record_of
from tusk.errors import DataError
from tusk.io import atomic_write

Progress = Callable[[int, int], None]  # files done, files in all
Draw = Callable[[Path, Detections], bytes]  # a picture's file and what was found in it -> a PNG
WriteResults = Callable[[Path, Callable[[], Iterable[Record]], int], Totals]  # folder, records, number of types

_READING_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Batch:
    """One process's share of the work on a source."""

    predictor: Predictor
    source: Source  # only what names files; the files themselves are in the ledger
    files: int
    folder: Path
    ledger: Ledger
    batch: int  # images that go through the network together
    types: int
    write_results: WriteResults  # the files that people want, from all records
    shard: int = 0
    shards: int = 1
    masks: bool = False
    draw: Draw | None = None

    def run(self, progress: Progress) -> Totals | None:
        """Do what is not done yet; -> the totals if that ended the run, None if other processes are still at it."""
        progress(done := self.ledger.done(), self.files)
        with ThreadPoolExecutor(_READING_THREADS) as pool:
            for part, paths in self.ledger.open_parts(self.shard, self.shards):
                records: list[Record] = []
                # Windows of fixed places: which pictures go through the network together is the same in every run.
                for start in range(0, len(paths), 4 * self.batch):
                    records += self._window(pool, paths[start : start + 4 * self.batch])
                    progress(done + len(records), self.files)
                self.ledger.store(part, records)
                done += len(records)
        with self.ledger.ending() as now:
            if not now:
                return None
            totals = self.write_results(self.folder, self.ledger.records, self.types)
            self.ledger.finish(totals)
            return totals

    def _window(self, pool: ThreadPoolExecutor, paths: Sequence[Path]) -> list[Record]:
        read = list(pool.map(self._read, paths))
        fitted = [picture for picture in read if isinstance(picture, FittedPicture)]
        found = iter(self.predictor.detect_fitted(fitted))
        return [
            picture if isinstance(picture, Record) else self._keep(path, next(found))
            for path, picture in zip(paths, read, strict=True)
        ]

    def _read(self, path: Path) -> FittedPicture | Record:
        name = self.source.label(path)
        for folder in self.source.unreadable:
            if folder.file == path:
                return Record(name, why=folder.reason)
        try:
            return self.predictor.fit_file(path, name)
        except DataError as error:
            return Record(name, why=error.why)

    def _keep(self, path: Path, found: Detections) -> Record:
        if self.masks and found.mask_map is not None:
            self._write_picture("masks", found.source, _as_png(found))
        if self.draw is not None:
            try:
                self._write_picture("overlays", found.source, self.draw(path, found))
            except DataError as error:  # it has gone or changed since it was read
                return Record(found.source, why=error.why)
        return record_of(found, found.box_side)

    def _write_picture(self, kind: str, name: str, content: bytes) -> None:
        # The whole name with its ending, so that a.png and a.jpg do not meet; and never out of the folder.
        inner = [piece if piece != ".." else "_" for piece in Path(name).parts if piece != "/"]
        path = self.folder.joinpath(kind, *inner[:-1], f"{inner[-1]}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, content, flushed=False)  # they can be made again, and there may be a million


def _as_png(found: Detections) -> bytes:
    """A grey picture whose values are 0 or 1 + the instance: 8 bits where they suffice, else 16."""
    assert found.mask_map is not None
    few = int(found.mask_map.max(initial=0)) < 256
    buffer = io.BytesIO()
    Image.fromarray(found.mask_map.astype(np.uint8) if few else found.mask_map).save(buffer, "PNG")
    return buffer.getvalue()
