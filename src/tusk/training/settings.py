"""The settings of a training, from its source, a preset, a file and the caller's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tusk.config import Config
from tusk.config.renames import upgrade
from tusk.data.registry import DATASETS, Request, open_dataset
from tusk.data.sources import find_files
from tusk.errors import DataError, UsageError, UserError
from tusk.presets import load_config, make_config, merge, preset_names
from tusk.training.preview import Preview, look_at

# A preset for images of scattered things takes pictures of any size in tiles that are as large as those images, and
# stretches their contrast to that of those images.
_SCATTERED = {"data": {"fit": "tiles", "contrast": "full"}}
# The presets for pictures without and with a background that things lie on.
_FOLDER = {False: "folder/plain", True: "folder/fast"}


def default_preset(source: str | Sequence[str] | None) -> str | None:
    """The preset where none is named: that of the dataset, or the one for pictures."""
    if source is None:
        return None
    if isinstance(source, str) and is_dataset(source):
        return source if source in {name.partition("/")[0] for name in preset_names()} else None
    return "folder"


def is_dataset(source: str) -> bool:
    """Whether this is the name of a dataset, and not that of a file or folder."""
    return source in DATASETS and not Path(source).exists()


@dataclass(frozen=True)
class Choice:
    """A whole configuration, and what a first look at the pictures found where it had a say in it."""

    config: Config
    preview: Preview | None = None


def choose_settings(
    sources: Sequence[str],
    preset: str | None,
    file: Path | None,
    settings: Mapping[str, Any],
    program: str,
    thing_size: float | None = None,
) -> Choice:
    """The preset's settings, with the file's over them, and `settings` over both. `program` is named in faults.

    sources: paths, or the name of a dataset; none for the preset's own dataset. thing_size: diameter of a usual
    thing in the pictures' pixels, where it is known. For pictures of one's own, a first look at them chooses the
    preset, where none is named, and stands above its settings, but below all that was given.
    """
    source = None if not sources else sources[0] if len(sources) == 1 else sources
    settings, renamed = upgrade(settings)
    for sentence in renamed:
        print(f"{program}: {sentence}.", file=sys.stderr)
    seen = _preview(source, preset, file, settings, thing_size)
    if thing_size is not None and seen is None:
        why = "there are no pictures here whose scale it could set"
        raise UsageError("thing_size", why, "leave it out, or train on pictures with preset folder/fast")
    preset = preset or default_preset(source)
    if preset == "folder":
        # Where there is nothing to look at, as with packed files, no background is expected.
        preset = _FOLDER[seen is not None and seen.has_background]
    base = load_config(preset, file).model_dump(mode="json")
    if seen is not None:
        base = merge(base, seen.settings(_is_sized(base)))
    if source is None:
        return Choice(make_config(merge(base, settings), program))
    _check_once(source, settings)
    if isinstance(source, str) and is_dataset(source):
        return Choice(make_config(merge(merge(base, settings), {"data": {"dataset": source}}), program))
    named = {"data": {"source": source}}
    config = make_config(merge(merge(base, settings), named), program)
    if "dataset" not in settings.get("data", {}) and _is_just_pictures(config):
        if file is None and DATASETS[config.data.dataset].scattered:
            base = merge(base, _SCATTERED)
        named["data"]["dataset"] = "folder"
        config = make_config(merge(merge(base, settings), named), program)
    return Choice(config, seen)


def _preview(
    source: str | Sequence[str] | None,
    preset: str | None,
    file: Path | None,
    settings: Mapping[str, Any],
    thing_size: float | None,
) -> Preview | None:
    """A first look at pictures of one's own; None where the settings do not depend on it."""
    if source is None or (isinstance(source, str) and is_dataset(source)) or file is not None:
        return None
    if preset not in (None, "folder", _FOLDER[True]) or settings.get("data", {}).get("dataset"):
        return None
    try:
        files = find_files(source).files
        return look_at(files, thing_size) if files else None
    except DataError:
        return None  # what is wrong with the source is said when it is opened, which also knows packed files


def _is_sized(values: Mapping[str, Any]) -> bool:
    return values["model"]["sizes"] is not None


def _check_once(source: str | Sequence[str], settings: Mapping[str, Any]) -> None:
    """What to learn from is said in one place."""
    data = settings.get("data", {})
    names = ["source", "dataset"] if isinstance(source, str) and is_dataset(source) else ["source"]
    for name in names:
        if data.get(name) is not None:
            first = source if isinstance(source, str) else source[0]
            raise UsageError(f"data.{name}", f"what to learn from was named already ({first})", "leave one of them out")


def _is_just_pictures(config: Config) -> bool:
    """Is the source no original of the preset's own dataset, but pictures that its settings may be tried on?"""
    source, *more = config.data.sources
    if config.data.dataset == "folder":
        return False
    try:
        open_dataset(config.data.dataset, Request(source=source, more=tuple(more)))
    except UserError:
        try:
            return bool(find_files(config.data.sources).files)
        except UserError:
            return False
    return False
