"""Detection over any number of files: in parts, by any number of processes, whatever happens in between."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

import numpy as np
from PIL import Image

from tusk.data.framing import FittedPicture
from tusk.data.sources import PictureFile, Source
from tusk.detection.detections import Detections
from tusk.detection.ledger import Ledger
from tusk.detection.predictor import Predictor
from tusk.detection.records import Record, Totals, record_of
from tusk.errors import DataError
from tusk.io import atomic_write
from tusk.names import path_inside

Progress = Callable[[int, int], None]  # files done, files in all
Name = Callable[[Detections, Path, int | None], Detections]  # what was found in a file, or in a frame of it
Draw = Callable[[Path, Detections, int | None], bytes]  # a picture's file, what was found, which frame -> a PNG
WriteResults = Callable[[Path, Callable[[], Iterable[Record]], int], Totals]  # folder, records, number of types

# A folder lies where the file should, or the other way round; or the file system refuses the name.
_BECAUSE_OF_A_NAME = frozenset(
    {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}
    | {errno.EACCES, errno.EPERM}  # what Windows says of a folder in the way
)
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
    name: Name | None = None  # names and corrections of people, where there are any

    def run(self, progress: Progress) -> Totals | None:
        """Do what is not done yet; -> the totals if that ended the run, None if other processes are still at it."""
        progress(done := self.ledger.done(), self.files)
        pool = ThreadPoolExecutor(_READING_THREADS)
        # The iterator holds the lock of the part at hand: closed, it gives that up, also where an error keeps it alive.
        with closing(self.ledger.open_parts(self.shard, self.shards)) as parts:
            try:
                for part, pictures in parts:
                    records: list[Record] = []
                    # Windows of fixed places: which pictures go through the network together is always the same.
                    for start in range(0, len(pictures), 4 * self.batch):
                        records += self._window(pool, pictures[start : start + 4 * self.batch])
                        progress(done + len(records), self.files)
                    self.ledger.store(part, records)
                    done += len(records)
            finally:
                pool.shutdown(cancel_futures=True)  # a stop does not wait for pictures that nobody wants any more
        with self.ledger.ending() as now:
            if not now:
                return None
            totals = self.write_results(self.folder, self.ledger.records, self.types)
            self.ledger.finish(totals)
            return totals

    def _window(self, pool: ThreadPoolExecutor, pictures: Sequence[PictureFile]) -> list[Record]:
        # The frames of a file one after the other: each needs those before it.
        of_files = [list(same) for _, same in groupby(pictures, lambda picture: picture.path)]
        read = [*chain.from_iterable(pool.map(self._read, of_files))]
        fitted = [picture for picture in read if isinstance(picture, FittedPicture)]
        found = iter(self.predictor.detect_fitted(fitted))
        return [
            one if isinstance(one, Record) else self._keep(picture, next(found))
            for picture, one in zip(pictures, read, strict=True)
        ]

    def _read(self, pictures: Sequence[PictureFile]) -> list[FittedPicture | Record]:
        """Pictures of one file."""
        path, names = pictures[0].path, [self.source.label(*picture) for picture in pictures]
        refused = next((one.reason for one in self.source.unreadable if one.file == path), None)
        if refused is not None:
            return [Record(name, why=refused) for name in names]
        fitted = self.predictor.fit_file(path, names, [picture.frame for picture in pictures])
        return [
            Record(name, why=one.why) if isinstance(one, DataError) else one
            for name, one in zip(names, fitted, strict=True)
        ]

    def _keep(self, picture: PictureFile, found: Detections) -> Record:
        faults: list[str | None] = []
        if self.name is not None:
            found = self.name(found, picture.path, picture.frame)
        if self.masks and found.mask_map is not None:
            faults.append(self._write_picture("masks", found.source, _as_png(found)))
        if self.draw is not None:
            try:
                overlay = self.draw(picture.path, found, picture.frame)
                faults.append(self._write_picture("overlays", found.source, overlay))
            except DataError as error:  # it has gone or changed since it was read
                return Record(found.source, why=error.why)
        unwritten = "; ".join(fault for fault in faults if fault is not None)
        return replace(record_of(found, found.box_side), unwritten=unwritten or None)

    def _write_picture(self, kind: str, name: str, content: bytes) -> str | None:
        """-> why it could not be written, where that is because of its name: the other pictures can."""
        path = self.folder / kind / path_inside(name, ".png")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, content, flushed=False)  # they can be made again, and there may be a million
        except OSError as error:
            if error.errno not in _BECAUSE_OF_A_NAME:
                raise
            return f"{kind}: {error.strerror}"
        return None


def _as_png(found: Detections) -> bytes:
    """A grey picture whose values are 0 or 1 + the instance: 8 bits where they suffice, else 16."""
    assert found.mask_map is not None
    few = int(found.mask_map.max(initial=0)) < 256
    buffer = io.BytesIO()
    Image.fromarray(found.mask_map.astype(np.uint8) if few else found.mask_map).save(buffer, "PNG")
    return buffer.getvalue()
