"""What a model file says beside its weights: format, version, configuration and provenance.

The file may come from anybody. Nothing here is believed before it is checked, and what is checked has bounds: a text of
a few megabytes must not become gigabytes of Python objects or of error messages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from tusk.config import Config
from tusk.errors import DataError, shortened
from tusk.presets import explain

FORMAT, VERSION = "tusk-model", 1
# A configuration has some thousand characters and 150 values.
_MOST_TEXT, _MOST_VALUES, _MOST_NAMES, _DEEPEST = 8 << 20, 50_000, 1000, 24
_LONG_TEXT = 1 << 20  # of the command or of the pictures' paths, beyond which a file that we write leaves them out
_NUMBERS = ("seed", "minutes", "steps", "score", "agreement", "least_gain")  # of the provenance
_LARGEST_NUMBER = 1e15
_OTHER_FILE = "use a file that tusk saved"


@dataclass(frozen=True)
class Metadata:
    """What `read_metadata` has checked, and the two texts as they stand in the file."""

    config: Config
    provenance: dict[str, Any]
    config_text: str
    provenance_text: str
    sha256: str


def read_metadata(path: Path, stored: Mapping[str, str]) -> Metadata:
    """The texts of a file's header; each fault is one sentence."""
    if stored.get("format") != FORMAT:
        raise DataError(str(path), "it is a safetensors file, but not a tusk model", _OTHER_FILE)
    _check_version(path, stored.get("version", ""))
    config_text, provenance_text = stored.get("config", ""), stored.get("provenance", "{}")
    provenance = _object_in(path, provenance_text, "provenance")
    _check_numbers(path, provenance)
    config = _read_config(path, _object_in(path, config_text, "configuration"))
    return Metadata(config, provenance, config_text, provenance_text, stored.get("sha256", ""))


def storable(config: Config, provenance: Mapping[str, Any]) -> tuple[str, str]:
    """Both as the texts of a file that `read_metadata` takes back, whatever pictures were named one by one."""
    config_text = config_json(config)
    if len(config_text) > _LONG_TEXT:
        bare = config.model_copy(update={"data": config.data.model_copy(update={"source": None})})
        config_text = config_json(bare)
    values = {
        name: shortened(value, 1000) if isinstance(value, str) and len(value) > _LONG_TEXT else value
        for name, value in provenance.items()
    }
    return config_text, json.dumps(values)


def config_json(config: Config) -> str:
    """The configuration as JSON, also where the name of a folder in it is not Unicode."""
    try:
        return config.model_dump_json()
    except PydanticSerializationError:
        return json.dumps(config.model_dump(mode="json"))


def _check_version(path: Path, version: str) -> None:
    if not (version.isascii() and version.isdecimal()):
        raise DataError(str(path), f"its format '{shortened(version)}' is not a number", _OTHER_FILE)
    if len(version) > 9 or int(version) > VERSION:
        raise DataError(str(path), f"its format {shortened(version)} is newer than this tusk reads", "upgrade tusk")


def _object_in(path: Path, text: str, what: str) -> dict[str, Any]:
    """A JSON object of bounded extent."""
    if len(text) > _MOST_TEXT:
        raise DataError(str(path), f"its {what} has {len(text):,} characters, which is absurd", _OTHER_FILE)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "is nested too deeply" if isinstance(error, RecursionError) else "is not JSON"
        raise DataError(str(path), f"its {what} {why}", _OTHER_FILE) from error
    if not isinstance(values, dict):
        raise DataError(str(path), f"its {what} is not a JSON object", _OTHER_FILE)
    _check_extent(path, values, what)
    return values


def _check_extent(path: Path, values: dict[str, Any], what: str) -> None:
    """Level by level and without recursion: what passes can be walked through, copied and checked without care."""
    level: list[Any] = [values]
    number = 0
    for _ in range(_DEEPEST):
        number += len(level)
        names = max((len(each) for each in level if isinstance(each, dict)), default=0)
        if number > _MOST_VALUES or names > _MOST_NAMES:
            why = f"its {what} has too many values (over {_MOST_VALUES:,}, or {_MOST_NAMES:,} names)"
            raise DataError(str(path), why, _OTHER_FILE)
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [value for part in inner for value in part]
        if not level:
            return
    raise DataError(str(path), f"its {what} is nested too deeply", _OTHER_FILE)


def _check_numbers(path: Path, provenance: Mapping[str, Any]) -> None:
    """Those that are computed with. NaN is what an unknown score may be."""
    for name in _NUMBERS:
        value = provenance.get(name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST_NUMBER:
            why = f"its provenance gives {shortened(repr(value))} for {name}, which is no sensible number"
            raise DataError(str(path), why, _OTHER_FILE)


def _read_config(path: Path, values: dict[str, Any]) -> Config:
    fix = "use a file that tusk saved, or upgrade tusk"
    try:
        return Config.from_stored(values)
    except ValidationError as error:
        fault = explain(error, str(path))
        raise DataError(fault.what, fault.why, fix) from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # Former names are brought up to date before anything is checked, and may stand for anything.
        raise DataError(str(path), f"its configuration is not understood ({type(error).__name__})", fix) from error
