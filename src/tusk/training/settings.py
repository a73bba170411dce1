"""The settings of a training, from its source, a preset, a file and the caller's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tusk.config import Config
from tusk.config.renames import upgrade
from tusk.data.registry import DATASETS, Request, open_dataset
from tusk.data.sources import find_files
from tusk.errors import UserError
from tusk.presets import load_config, make_config, merge, preset_names

# A preset for images of scattered things takes pictures of any size in tiles that are as large as those images, and
# stretches their contrast to that of those images.
_SCATTERED = {"data": {"fit": "tiles", "contrast": "full"}}


def default_preset(source: str | None) -> str | None:
    """The preset where none is named: that of the dataset, or the one for pictures."""
    if source is None:
        return None
    if is_dataset(source):
        return source if source in {name.partition("/")[0] for name in preset_names()} else None
    return "folder"


def is_dataset(source: str) -> bool:
    """Whether this is the name of a dataset, and not that of a file or folder."""
    return source in DATASETS and not Path(source).exists()


def choose_settings(
    source: str | None, preset: str | None, file: Path | None, settings: Mapping[str, Any], program: str
) -> Config:
    """The preset's settings, with the file's over them, and `settings` over both. `program` is named in faults."""
    base = load_config(preset or default_preset(source), file).model_dump(mode="json")
    settings, renamed = upgrade(settings)
    for sentence in renamed:
        print(f"{program}: {sentence}.", file=sys.stderr)
    if source is None:
        return make_config(merge(base, settings), program)
    if is_dataset(source):
        return make_config(merge(merge(base, settings), {"data": {"dataset": source}}), program)
    named = {"data": {"source": source}}
    config = make_config(merge(merge(base, settings), named), program)
    if "dataset" not in settings.get("data", {}) and _is_just_pictures(config):
        if file is None and DATASETS[config.data.dataset].scattered:
            base = merge(base, _SCATTERED)
        named["data"]["dataset"] = "folder"
        config = make_config(merge(merge(base, settings), named), program)
    return config


def _is_just_pictures(config: Config) -> bool:
    """Is the source no original of the preset's own dataset, but pictures that its settings may be tried on?"""
    source = str(config.data.source)
    if config.data.dataset == "folder":
        return False
    try:
        open_dataset(config.data.dataset, Request(source=source))
    except UserError:
        try:
            return bool(find_files(source).files)
        except UserError:
            return False
    return False
