"""The words of a command: which are flags, which their values, and which stand for themselves, such as paths.

A path is taken literally and may stand anywhere: nothing here looks into a word but to see whether it is a flag.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tyro

from tusk.errors import UsageError, nearest

NUMBERS, TEXTS = -1, -2  # a flag takes all the numbers, or all the words, that follow it


@dataclass
class Words:
    """A command's words, sorted."""

    plain: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)  # each followed by its values
    names: list[str] = field(default_factory=list)  # of the flags, as they were written


def split_words(args: Sequence[str], room_of: Callable[[str], int]) -> Words:
    """`room_of` tells how many values a flag takes. After a bare `--` every word stands for itself."""
    words, room = Words(), 0
    for place, word in enumerate(args):
        if word == "--":
            words.plain += args[place + 1 :]
            break
        is_flag = word.startswith("-") and word != "-" and not _is_number(word)
        if is_flag:
            name, equals, _ = word.partition("=")
            words.flags.append(word)
            words.names.append(name)
            room = 0 if equals else room_of(name)
        elif room == TEXTS or (room == NUMBERS and (_is_number(word) or word == "None")):
            words.flags.append(word)
        elif room > 0:
            words.flags.append(word)
            room -= 1
        else:
            words.plain.append(word)
            room = 0
    return words


def check_names(
    names: Iterable[str], known: Iterable[str], program: str, same: Mapping[str, str] | None = None
) -> None:
    """Refuse a flag that is not known, with the nearest one, and a short one beside its long form.

    same: short names and the long ones that they stand for; flags with a dot are settings, and checked elsewhere. Of
    one and the same flag the last counts, as everywhere: scripts add theirs to a list.
    """
    choices, same = [*known], same or {}
    given: dict[str, str] = {}
    for name in names:
        if "." not in name and name not in choices:
            close = nearest(name, choices)
            fix = close if close.endswith("?") else f"see '{program} --help'"
            raise UsageError(name, "there is no such flag", fix)
        meant = same.get(name, name).replace("_", "-")
        other = given.setdefault(meant, name)
        if other != name:
            why = f"it is given beside {other}, which means the same"
            raise UsageError(name, why, "leave one of them out")


def flags_of(command: Callable[..., Any]) -> dict[str, int]:
    """The flags that a command's parameters become, and how many values each takes."""
    flags = {"--help": 0, "-h": 0}
    hints = typing.get_type_hints(command, include_extras=True)
    for name in inspect.signature(command).parameters:
        kind, *marks = typing.get_args(hints[name]) if hasattr(hints[name], "__metadata__") else (hints[name],)
        if any(mark is tyro.conf.Positional or mark is tyro.conf.Suppress for mark in marks):
            continue
        shown = next((mark.name for mark in marks if getattr(mark, "name", None)), name).replace("_", "-")
        flags[f"--{shown}"] = 0 if kind is bool else 1
        if kind is bool:
            flags[f"--no-{shown}"] = 0
    return flags


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
