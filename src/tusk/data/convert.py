"""Converts a dataset's original file to a packed one, once; later uses open the packed file directly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tusk.data.dataset import Truth, UInt8Array
from tusk.data.formats.tf_example import Example, parse_example
from tusk.data.formats.tfrecord import read_records
from tusk.data.packed import PackedDataset, PackedWriter, Progress, Provenance
from tusk.errors import DataError


@dataclass(frozen=True)
class Conversion:
    """What is made from what: an existing packed file serves only if all of this is as it was."""

    source: Path
    destination: Path
    name: str  # of the dataset
    generator: str  # the converter's name, with a number that rises when its results change
    settings: str = ""

    def provenance(self) -> Provenance:
        state = self.source.stat()
        return Provenance(
            generator=self.generator,
            settings=self.settings,
            source_file=self.source.name,
            source_bytes=state.st_size,
            source_modified_ns=state.st_mtime_ns,
        )


def packed_path(source: Path, cache: Path | str | None, suffix: str = "") -> Path:
    """Where the packed form of `source` lies: in the cache folder, or else beside it."""
    folder = source.parent if cache is None else Path(cache)
    return folder / f"{source.stem}{suffix}.packed.h5"


def convert_once(
    conversion: Conversion, items: Iterable[tuple[UInt8Array, Truth]], progress: Progress | None = None
) -> PackedDataset:
    """The packed dataset; `items` is read only if there is none yet, or if the source or the settings have changed."""
    existing = _existing(conversion)
    if existing is not None:
        return existing
    with PackedWriter(conversion.destination, name=conversion.name, provenance=conversion.provenance()) as writer:
        for done, (image, truth) in enumerate(items, start=1):
            writer.append(image, truth)
            if progress is not None:
                progress(done, None)
    return PackedDataset(conversion.destination)


def _existing(conversion: Conversion) -> PackedDataset | None:
    there = conversion.destination.exists()
    if not conversion.source.is_file():
        if there:
            # Originals are large; who has converted one may delete it.
            return _own(conversion)
        raise DataError(str(conversion.source), "is not a file", "check the path")
    if not there:
        return None
    packed, wanted = _own(conversion), conversion.provenance()
    found = packed.provenance
    same = (found.settings, found.source_bytes, found.source_modified_ns) == (
        wanted.settings,
        wanted.source_bytes,
        wanted.source_modified_ns,
    )
    return packed if same and found.generator == wanted.generator else None


def _own(conversion: Conversion) -> PackedDataset:
    """The packed file at the destination, if it was made from this source: nothing else may be overwritten."""
    try:
        packed = PackedDataset(conversion.destination)
        if (packed.name, packed.provenance.source_file) == (conversion.name, conversion.source.name):
            return packed
        why = f"is in the way: it was not made from {conversion.source}"
    except DataError as error:
        why = f"is in the way, and {error.why}"
    raise DataError(str(conversion.destination), why, "move that file away, or give another cache folder")


def read_examples(path: Path, limit: int | None = None) -> Iterator[tuple[Example, str]]:
    """Every Example of a TFRecord file, with the words that say where it is."""
    for record in islice(read_records(path), limit):
        yield parse_example(record.data, record.where), record.where


def split_rows(count: int, train: int, test: int) -> tuple[range, range]:
    """The first `train` and the last `test` of `count` rows.

    Where there are fewer rows than both together, the last still test; where there is not even half, as in a part of a
    file for a trial, they are divided in the same proportion.
    """
    tests = test if 2 * count >= train + test else count * test // (train + test)
    return range(min(train, count - tests)), range(count - tests, count)
