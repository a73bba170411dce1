"""Finding and merging configurations: a preset, then a YAML file over it, then flags over both."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from tusk.config import Config
from tusk.config.renames import upgrade
from tusk.errors import UsageError, nearest, shortened

VARIANTS = ("fast", "paper", "plain")


def preset_names() -> list[str]:
    """All presets: `NAME/fast` (this project's), `NAME/paper` (the paper's network and constants) and `folder/plain`
    (for pictures without a background that things lie on)."""
    root = resources.files(__name__)
    return sorted(
        f"{folder.name}/{variant}"
        for folder in root.iterdir()
        if folder.is_dir()
        for variant in VARIANTS
        if (folder / f"{variant}.yaml").is_file()
    )


def load_config(preset: str | None = None, file: Path | None = None) -> Config:
    """The configuration of a preset (a bare name means its `fast` variant), with a YAML file's values over it."""
    values: dict[str, Any] = {}
    if preset is not None:
        values = _preset_values(preset)
    if file is not None:
        # Former names are replaced before the merge: the file's value must win over the preset's.
        values = merge(values, _renamed(_read_yaml(file), str(file)))
    return make_config(values, str(file) if file is not None else f"preset {preset}")


def make_config(values: Mapping[str, Any], source: str) -> Config:
    """Check the values; the first fault becomes one sentence with the nearest valid name.

    Settings under a former name are taken, with a line on stderr that says the present one.
    """
    try:
        return Config.model_validate(_renamed(values, source))
    except ValidationError as error:
        raise explain(error, source) from error


def _renamed(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The values under their present names; what was renamed is said."""
    values, sentences = upgrade(values)
    for sentence in sentences:
        print(f"{source}: {sentence}.", file=sys.stderr)
    return values


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`, part by part."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def to_yaml(config: Config) -> str:
    """The whole configuration as YAML that `load_config` reads back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def explain(error: ValidationError, source: str) -> UsageError:
    """The first fault that pydantic found, in the words of a user."""
    fault = error.errors()[0]
    names = _names(fault["loc"])
    setting = ".".join(names) or "configuration"
    if fault["type"] == "extra_forbidden":
        part = _part_at(names[:-1])
        return UsageError(f"{source}: {setting}", "there is no such setting", nearest(names[-1], part.model_fields))
    if fault["type"] == "literal_error":
        choices = fault["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return UsageError(
            f"{source}: {setting}", f"{_shown(fault['input'])} is not a choice", nearest(str(fault["input"]), choices)
        )
    why = fault["msg"].removeprefix("Value error, ")
    why = why[:1].lower() + why[1:]
    if not isinstance(fault["input"], Mapping | BaseModel):
        why += f" (it is {_shown(fault['input'])})"
    return UsageError(f"{source}: {setting}", shortened(why, 400), "correct that value")


def _shown(value: object) -> str:
    """A value as Python writes it, cut where it is long or deep."""
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = brief.maxlong = 80
    return brief.repr(value)


def _names(place: tuple[int | str, ...]) -> list[str]:
    """The settings on the way to a fault, without the names of a union's members that pydantic appends."""
    names: list[str] = []
    part: type[BaseModel] | None = Config
    for name in place:
        if part is None:
            break
        names.append(shortened(str(name)))
        field = part.model_fields.get(str(name))
        kind = field.annotation if field else None
        part = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
    return names


def _part_at(path: list[str]) -> type[BaseModel]:
    """The part of the tree that a path of names leads to."""
    part: type[BaseModel] = Config
    for name in path:
        kind = part.model_fields[name].annotation
        assert isinstance(kind, type) and issubclass(kind, BaseModel)
        part = kind
    return part


def _preset_values(preset: str) -> dict[str, Any]:
    full = preset if "/" in preset else f"{preset}/fast"
    if full not in preset_names():
        known = {name.split("/")[0] for name in preset_names()}
        bare, _, variant = full.partition("/")
        hint = nearest(variant, VARIANTS) if bare in known else nearest(bare, known)
        raise UsageError(f"preset '{preset}'", "there is no such preset", hint)
    name, variant = full.split("/")
    text = (resources.files(__name__) / name / f"{variant}.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(str(file), "there is no such file", "check the path of the configuration") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(str(file), f"it cannot be read as YAML ({reason})", "correct the file") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(str(file), "it does not hold settings by name", "write settings as 'part: {name: value}'")
    return values
