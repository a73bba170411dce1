"""Flags, read by tyro, with every fault as one sentence.

A configuration comes from `--preset NAME`, then `--config FILE` over it, then single settings over both.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import re
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
import yaml
from pydantic import BaseModel

from tusk.cli.words import NUMBERS, TEXTS, check_names, flags_of, split_words
from tusk.config import Config
from tusk.config.renames import upgrade
from tusk.errors import UsageError
from tusk.presets import load_config, make_config, merge

Result = TypeVar("Result")
# Of a verb that computes.
Device = Annotated[str, tyro.conf.arg(help="auto, cpu, cuda, cuda:1 or mps; auto takes a GPU where there is one.")]


def config_from_flags(args: Sequence[str], program: str) -> Config:
    """The configuration that the flags give, in order of precedence: preset, then file, then single settings."""
    sources = argparse.ArgumentParser(prog=program, add_help=False, allow_abbrev=False, exit_on_error=False)
    sources.add_argument("--preset")
    sources.add_argument("--config", type=Path)
    try:
        chosen, rest = sources.parse_known_args(list(args))
    except argparse.ArgumentError as error:
        raise UsageError(f"flags of '{program}'", str(error), f"see '{program} --help'") from error
    rest = [_present_name(word) for word in rest]
    names = [word.partition("=")[0] for word in args if word.startswith("--")]
    check_names(names, ["--preset", "--config", "--help", *setting_flags()], program)
    base = load_config(chosen.preset, chosen.config)
    _explain_settings(base, rest)
    words = "Before all of these may stand: --preset NAME, --config FILE.yaml."
    return _parse(Config, rest, program, default=base, description=words)


def settings_from_flags(args: Sequence[str], preset: str | None, file: Path | None, program: str) -> dict[str, Any]:
    """Those settings, part by part, that the flags give: `{"model": {"keypoints": 9}}`. They are checked together."""
    if not args:
        return {}
    args = [_present_name(word) for word in args]
    base = load_config(preset, file)
    _explain_settings(base, args)
    values = _parse(Config, args, program, default=base).model_dump(mode="json")
    settings: dict[str, Any] = {}
    for word in args:
        if word.startswith("--"):
            path = word[2:].partition("=")[0].replace("-", "_").replace(".no_", ".").split(".")
            value = _current(values, ".".join(path))
            for part in reversed(path):
                value = {part: value}
            settings = merge(settings, value)
    return settings


def take_settings(args: Sequence[str], part: str) -> tuple[list[str], dict[str, Any]]:
    """`--PART.SETTING VALUE` and `--PART.SETTING=VALUE` -> the other words, and the settings by name."""
    rest: list[str] = []
    settings: dict[str, Any] = {}
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if not name.startswith(f"--{part}."):
            rest.append(word)
            continue
        text = value if equals else next(words, None)
        if text is None:
            raise UsageError(name, "it has no value", f"write {name} VALUE")
        key = name.removeprefix(f"--{part}.").replace("-", "_")
        settings[key] = None if text == "None" else _value(text)
    for key in settings:
        short = f"--{key.replace('_', '-')}"
        if any(word.partition("=")[0] == short for word in rest):
            why = f"it is given beside --{part}.{short[2:]}, which means the same"
            raise UsageError(short, why, "leave one of them out")
    return rest, settings


def run_with_flags(command: Callable[..., None], args: Sequence[str], program: str, **fixed: Any) -> None:
    """Call the command with its arguments from flags, and with the fixed ones."""
    known = flags_of(command)
    words = split_words(args, lambda name: known.get(name, 1))
    check_names(words.names, known, program)

    @functools.wraps(command)
    def prepare(*positional: Any, **named: Any) -> Callable[[], None]:
        return functools.partial(command, *positional, **{**named, **fixed})

    _parse(prepare, [*words.flags, *(["--", *words.plain] if words.plain else [])], program)()


def _parse(target: Callable[..., Result], args: Sequence[str], program: str, **options: Any) -> Result:
    """What tyro makes of the flags; what it says of a fault, in a box, becomes one sentence."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            result: Result = tyro.cli(target, prog=program, args=list(args), **options)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise UsageError(f"flags of '{program}'", _first_words(said.getvalue()), f"see '{program} --help'") from None
    return result


def _present_name(word: str) -> str:
    """A flag of a setting that was renamed, under its present name; the rest as it is."""
    name, equals, value = word.partition("=")
    if not name.startswith("--") or "." not in name:
        return word
    setting: Any = ""
    for part in reversed(name[2:].replace("-", "_").split(".")):
        setting = {part: setting}
    setting, renamed = upgrade(setting)
    path = []
    while isinstance(setting, dict) and len(setting) == 1:
        [(part, setting)] = setting.items()
        path.append(part.replace("_", "-"))
    if not renamed or setting != "":
        return word
    print(f"flags: {renamed[0]}.", file=sys.stderr)
    return f"--{'.'.join(path)}{equals}{value}"


def _first_words(box: str) -> str:
    """The text of a box up to its first rule, in one line."""
    lines = []
    for line in box.splitlines()[1:]:
        text = line.strip("│╰╯─ ")
        if not text:
            break
        lines.append(text)
    words = " ".join(lines).rstrip(".")
    return (words[:1].lower() + words[1:]) or "the flags are not understood"


def _explain_settings(base: Config, args: Sequence[str]) -> None:
    """Check the `--part.setting value` pairs: an unknown name or a bad value is refused with the nearest name.

    They are checked together, because some are only right together.
    """
    given: dict[str, list[str]] = {}
    name = ""
    for word in args:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            given[name] = [value] if equals else []
        elif name:
            given[name].append(word)
    values = merged = base.model_dump(mode="json")
    for name, words in given.items():
        if "." not in name or not words or re.search(r"\.no_\w+$", name):
            continue  # single words are flags of the command; switches are tyro's
        now = _current(values, name)
        many = isinstance(now, list) and not any(isinstance(item, list) for item in now)
        if _is_text(name):
            setting: Any = words[0] if len(words) == 1 else words
        elif many:
            continue  # lists of numbers are tyro's
        elif len(words) == 1:
            setting = _value(words[0])
        else:  # a schedule, whose places and values stand one after the other
            numbers = [_value(word) for word in words]
            setting = [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=False)]
        if setting is None or setting == "None":
            continue  # what tyro writes for "nothing"
        for part in reversed(name.split(".")):
            setting = {part: setting}
        merged = merge(merged, setting)
    make_config(merged, "flags")


def _current(values: Any, name: str) -> Any:
    """The value of a setting with a dotted name, or None where there is no such setting."""
    for part in name.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def room_for(flag: str) -> int:
    """How many values the flag of a setting takes; one where there is no such setting, which is refused later."""
    kinds = _kinds(flag.lstrip("-").replace("-", "_"))
    if re.search(r"\.no_\w+$", flag.replace("-", "_")) or bool in kinds:
        return 0
    if tuple in kinds:
        return TEXTS if Path in kinds else NUMBERS
    return 1


def setting_flags() -> list[str]:
    """Every setting as a flag."""
    return [f"--{name.replace('_', '-')}" for name in _names(Config().model_dump())]


def _names(values: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _names(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def _is_text(name: str) -> bool:
    """Whether a setting is a name or a path, which is taken as it is written."""
    kinds = _kinds(name)
    return bool({str, Path} & kinds)


def _value(word: str) -> Any:
    """A number, a switch or a list as YAML writes it; a word that is not YAML stays as it is."""
    try:
        return yaml.safe_load(word)
    except yaml.YAMLError:
        return word


def _kinds(name: str) -> set[Any]:
    """The types that a setting with a dotted name may have; none where there is no such setting."""
    part: Any = Config()
    *path, last = name.split(".")
    for word in path:
        part = getattr(part, word, None) if isinstance(part, BaseModel) else None
    field = type(part).model_fields.get(last) if isinstance(part, BaseModel) else None
    return set() if field is None else set(_members(field.annotation))


def _members(kind: Any) -> Iterator[Any]:
    """Those of a union; of a list what it is and what it holds."""
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return
    if origin is None:
        yield kind
        return
    if origin is tuple:
        yield tuple
    for inner in typing.get_args(kind):
        yield from _members(inner)
