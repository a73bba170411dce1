"""Detection over the files of a source into a folder of results, which any number of processes may share and resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tusk.data.sources import Source
from tusk.detection.batch import Batch
from tusk.detection.draw import overlay_png
from tusk.detection.labels import TypeLabels
from tusk.detection.ledger import Ledger, Manifest, checksum, part_size
from tusk.detection.limits import limit_remarks
from tusk.detection.predictor import Predictor
from tusk.detection.records import Totals
from tusk.errors import UsageError
from tusk.export.csv import read_counts, read_rows
from tusk.export.results import write_results
from tusk.folders import new_folder, short_folder
from tusk.model.storage import StoredModel
from tusk.naming import Naming, apply_naming, named_types
from tusk.naming.identity import checksum_of_naming


@dataclass(frozen=True)
class FileOptions:
    """What else is written, where, and which share of the files is this process's."""

    batch: int = 8  # images that go through the network together
    masks: bool = False
    overlays: bool = False
    share: tuple[int, int] = (0, 1)  # which, of how many
    out: Path | None = None
    resume: bool = False


@dataclass(frozen=True)
class FileResults:
    """What a run over files gave."""

    folder: Path
    files: int
    totals: Totals | None  # None while other processes are still at work
    min_gain: float  # detections of a lower gain were left out
    titles: dict[int, str] | None = None  # of the types by their numbers, where people have named them
    before: tuple[str, ...] = ()  # what was remarked on the pictures before they were read

    def rows(self) -> Iterator[dict[str, str | int | float]]:
        """Those of detections.csv, with numbers as numbers."""
        return read_rows(self.folder / "detections.csv")

    def counts(self) -> Iterator[dict[str, str | int]]:
        """A row for each picture that could be read: image, total, and how many of each type (those of counts.csv)."""
        return read_counts(self.folder / "counts.csv")

    @property
    def remarks(self) -> list[str]:
        """Which limits the counts met: keypoints that ran out, things too close together or too small."""
        return [] if self.totals is None else [*self.before, *limit_remarks(self.totals.limits, self.min_gain)]


def detect_files(
    model: StoredModel,
    predictor: Predictor,
    source: Source,
    options: FileOptions,
    settings: Mapping[str, Any],
    version: str,
    naming: Naming | None = None,
    *,
    started: Callable[[Path], None],
    progress: Callable[[int, int], None],
) -> FileResults:
    """Detect in every file; what was done by an earlier run of the same settings is not done again.

    settings: keypoints, min_score and the detection settings that the results depend on; started: called with the
    folder once it is certain that the run begins; naming: how people have named and corrected the types.
    """
    config = model.config.model
    if options.masks and config.decode != "layers":
        raise UsageError("--masks", "this model has no layers, so it knows no masks", "leave it out")
    predictor.check_memory(len(source.files))
    manifest = Manifest(
        version=version,
        model=model.fingerprint(),
        source=str(source.origin),
        files=len(source.files),
        names=checksum(source),
        part=part_size(len(source.files)),
        min_gain=predictor.min_gain,
        batch=options.batch,
        masks=options.masks,
        overlays=options.overlays,
        naming=None if naming is None else checksum_of_naming(naming),
        **settings,
    )
    folder = _folder(options, source.name)
    state = None if naming is None else named_types(naming)
    labels = None if state is None else TypeLabels({number: state[number].title for number in state.visible})
    with Ledger(folder, source, manifest) as ledger:
        started(folder)
        batch = Batch(
            predictor=predictor,
            source=replace(
                source, files=(), frames=()
            ),  # they are in the ledger: memory does not grow with their number
            files=manifest.files,
            folder=folder,
            ledger=ledger,
            batch=options.batch,
            types=config.types if state is None else state.count,
            write_results=partial(write_results, labels=labels),
            shard=options.share[0],
            shards=options.share[1],
            masks=options.masks,
            draw=overlay_png if options.overlays else None,
            name=None if naming is None else lambda found, path, frame: apply_naming(found, naming, path, frame),
        )
        totals = batch.run(progress) or ledger.totals()
        return FileResults(
            folder, manifest.files, totals, predictor.min_gain, None if labels is None else labels.titles
        )


def _folder(options: FileOptions, name: str) -> Path:
    """Where the results go: a new folder, or to resume that of the latest run."""
    if options.out is None:
        wanted = short_folder(Path("runs/detect") / name)
        fresh = new_folder(wanted)
        if not options.resume:
            return fresh
        number = int(fresh.name.removeprefix(f"{wanted.name}-")) - 1 if fresh != wanted else 0
        latest = wanted if number < 2 else wanted.with_name(f"{wanted.name}-{number}")
    else:
        latest = options.out
    if options.resume and not (latest / "manifest.json").is_file():
        raise UsageError("--resume", f"there is no run in {latest}", "leave it out to begin one")
    return latest
