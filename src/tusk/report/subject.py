"""What a page is about: a run in its folder, finished or not, or a model by itself; and the images to show it on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tusk.config import Config
from tusk.data.listing import FileList, compare, list_files, read_list
from tusk.data.registry import DATASETS, open_dataset, request_for
from tusk.detection.settings import DetectionSettings, settings_from
from tusk.errors import DataError, UsageError
from tusk.model.network import Network
from tusk.model.storage import StoredModel, load_model
from tusk.naming import Naming, names_path, open_names
from tusk.presets import load_config
from tusk.report.sample import Sample, sample_of
from tusk.report.type_tree import TypeTree, read_tree
from tusk.training.checkpoint import Checkpoints
from tusk.training.seeds import stored_seeds
from tusk.weights import model_path

LEARNT_FROM, NOT_LEARNT_FROM = ", which it learnt from", " that it did not learn from"


@dataclass(frozen=True)
class Subject:
    """A network and what is known of how it came about."""

    network: Network
    config: Config
    logs: Path | None = None  # the folder with metrics.jsonl and results.csv, if there is any
    command: str | None = None
    step: int | None = None  # of the weights
    minutes: float | None = None
    finished: bool = True
    least_gain: float | None = None  # of a detection, where training has set it
    type_tree: TypeTree | None = None  # where types were merged from clusters
    naming: Naming | None = None  # what people have said of the types
    in_its_folder: bool = True  # it lies in the folder of its run; otherwise it is a file, which may come from anybody

    @property
    def settings(self) -> DetectionSettings:
        """Those of `tusk detect` with this model."""
        return settings_from(self.config, self.least_gain)


@dataclass(frozen=True)
class Images:
    """A sample, and in words where it comes from."""

    sample: Sample
    origin: str  # after "N images": e.g. "of digits that it did not learn from"


def open_subject(run: str) -> Subject:
    """RUN: the folder of a run, a model file, or the name of a model that comes with tusk."""
    folder = Path(run)
    if not folder.is_dir():
        return _with_names(load_model(model_path(run)), model_path(run), None)
    if (folder / "model.safetensors").is_file():
        file = folder / "model.safetensors"
        return _with_names(load_model(file), file, folder)
    if not (folder / "config.yaml").is_file():
        raise DataError(run, "there is no run in it (no config.yaml)", "name the folder of a run")
    return _unfinished(folder)


def subject_of(model: StoredModel, folder: Path | None) -> Subject:
    """A model, and the folder of its run where there is one."""
    known = model.provenance
    return Subject(
        network=model.network,
        config=model.config,
        logs=None if folder is None else _logs(folder, model),
        command=str(known["command"]) if known.get("command") else None,
        step=None if (steps := _number(known, "steps")) is None else int(steps),
        minutes=_number(known, "minutes"),
        least_gain=model.least_gain,
        type_tree=read_tree(known.get("type_tree"), model.config.model.prototypes),
        in_its_folder=folder is not None,
    )


def _with_names(model: StoredModel, file: Path, folder: Path | None) -> Subject:
    """With the names that lie beside the model."""
    subject, path = subject_of(model, folder), names_path(file)
    naming = open_names(path, model) if path.exists() else None
    return replace(subject, naming=naming if naming is not None and naming.edits else None)


def _number(known: Mapping[str, Any], name: str) -> float | None:
    value = known.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _logs(folder: Path, model: StoredModel) -> Path:
    """Of several seeds, the logs of the one that was kept."""
    own = folder / f"seed-{model.provenance.get('seed')}"
    return own if stored_seeds(folder) and own.is_dir() else folder


def _unfinished(folder: Path) -> Subject:
    """The weights of the last checkpoint."""
    seeds = stored_seeds(folder)
    if seeds:
        fix = f"name one of them, such as {folder / f'seed-{seeds[0]}'}"
        raise DataError(str(folder), "several seeds are trained in it, and none is chosen yet", fix)
    file = folder / "config.yaml"
    config = load_config(None, file)
    checkpoints = Checkpoints(folder / "checkpoints", file.read_text(encoding="utf-8"))
    network = Network(config.model)
    last = checkpoints.restore_network(network, "last")
    if last is None:
        raise DataError(str(folder), "there is neither a model nor a checkpoint in it", "wait for the first checkpoint")
    return Subject(
        network=network.eval().requires_grad_(False),
        config=config,
        logs=folder,
        step=last.step,
        minutes=last.seconds / 60,
        finished=False,
    )


def open_images(
    config: Config, data: str | None, count: int, run: Path | None = None, *, trust_source: bool = True
) -> Images:
    """The first images of `data` (a folder, a packed file, a dataset's name), or of what the model was trained for.

    Of a dataset with a part for tests, that part. run: the folder of the run, whose own pictures must be as they were.
    Without `trust_source`, a path that the configuration names is not opened: whoever made a model file could have us
    read, and show on a page, what they choose.
    """
    own = config.data
    if data is None and own.dataset == "folder" and own.source is None:
        raise UsageError("--data", "the model does not say which images it is for", "name a folder or a dataset")
    if data is None and own.source is not None and not trust_source:
        why = f"the model file names {own.source_words}, and what a model file names is not opened unasked"
        raise UsageError("--data", why, "name a folder or a dataset, or add --trust-source to open that one")
    source: str | tuple[str, ...] | None = own.sources
    name, learnt_from = own.dataset, bool(own.sources) and own.dataset == "folder"
    if data is not None:
        named = data in DATASETS and not Path(data).exists()
        name, source, learnt_from = (data, None, False) if named else ("folder", data, False)
    request = request_for(own, source=source, split="test", seed=config.training.seed)
    dataset = open_dataset(name, request)
    if learnt_from and run is not None:
        _refuse_others(run, list_files(dataset, own.source))
    sample = sample_of(dataset, count)
    if data is not None:
        return Images(sample, f"of {sample.name}")
    return Images(sample, f"of {sample.name}{LEARNT_FROM if learnt_from else NOT_LEARNT_FROM}")


def _refuse_others(run: Path, files: FileList | None) -> None:
    """A page says that the run learnt from the pictures that it shows."""
    before = read_list(run)
    if before is None or files is None:
        return  # a run of an older tusk does not know
    changes = compare(before, files)
    if changes.are_others:
        why = f"its pictures are not those that it learnt from ({changes.words})"
        raise DataError(str(run), why, "put those back, or name the pictures to show with --data")
