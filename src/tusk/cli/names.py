"""`tusk names MODEL ...`: names for types; merge, split, hide them; undo."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tusk.errors import UsageError, nearest, visible

if TYPE_CHECKING:
    from tusk.api.naming import Names

_HELP = """\
usage: tusk names MODEL WORDS [--names FILE] [--device WHERE]

Say what the types of a model are. What is said lies beside the model in names.json, and holds for detect, evaluate,
report, serve and all that they write. A type is given by its number, or by its name.

words
  list                    every type, and what was said of it; also without any words
  set TYPE NAME           its name; '' takes the name away
  colour TYPE COLOUR      #rrggbb, or 'own' for that of its number
  merge TYPE TYPE ...     all others become the first
  split TYPE [PICTURE..]  in two, by how the things of that type look in these pictures; types that training merged
                          from several prototypes need no pictures
  sort PICTURE ...        no other kinds: points of all other types go to the nearest type that has a name or clicks,
                          by how things look in these pictures
  hide TYPE ...           points of this type are no detections
  show TYPE ...           they are again
  undo, redo              the last change
  history                 every change

flags
  --names FILE    another file than the one beside the model
  --device WHERE  where 'split' looks at pictures: auto (a GPU where there is one), cpu, cuda, cuda:1 or mps
  --json          'list' as JSON to stdout
  --help          this text
"""


def run(args: Sequence[str]) -> None:
    given = _flags(args)
    if given is None:
        print(_HELP, end="")
        return
    words = given.words
    if not words:
        raise UsageError("MODEL", "no model was named", "see 'tusk names --help'")
    model, verb, rest = words[0], (words[1:2] or ["list"])[0], words[2:]
    if verb not in _VERBS:
        raise UsageError(f"'{verb}'", "there is no such word", nearest(verb, _VERBS))
    if given.as_json and verb != "list":
        raise UsageError("--json", "only 'list' has it", "leave it out")
    from tusk.api.naming import open_names_of

    names = open_names_of(model, given.file, given.device)
    least, most = _VERBS[verb]
    if not least <= len(rest) <= most:
        raise UsageError(f"'{verb}'", _room(len(rest), least, most), "see 'tusk names --help'")
    if verb == "list":
        print(names.as_json() if given.as_json else visible_lines(names.lines()))
        return
    if verb == "history":
        print(visible_lines(names.history()))
        return
    _CHANGES[verb](names, rest)
    print(visible(names.last), file=sys.stderr)
    print(names.path)


def visible_lines(lines: Sequence[str]) -> str:
    return "\n".join(map(visible, lines))


def _merge(names: Names, words: Sequence[str]) -> None:
    for other in words[1:]:
        names.merge(words[0], other)


def _hide(names: Names, words: Sequence[str], *, hidden: bool) -> None:
    for word in words:
        names.hide(word, hidden=hidden)


_MANY = 1 << 30
_VERBS = {
    "list": (0, 0),
    "set": (2, 2),
    "colour": (2, 2),
    "merge": (2, _MANY),
    "split": (1, _MANY),
    "sort": (1, _MANY),
    "hide": (1, _MANY),
    "show": (1, _MANY),
    "undo": (0, 0),
    "redo": (0, 0),
    "history": (0, 0),
}
_CHANGES: dict[str, Callable[[Names, Sequence[str]], None]] = {
    "set": lambda names, words: names.rename(words[0], words[1]),
    "colour": lambda names, words: names.recolour(words[0], None if words[1] == "own" else words[1]),
    "merge": _merge,
    "split": lambda names, words: names.split(words[0], words[1:]),
    "sort": lambda names, words: names.sort(words),
    "hide": lambda names, words: _hide(names, words, hidden=True),
    "show": lambda names, words: _hide(names, words, hidden=False),
    "undo": lambda names, _: names.undo(),
    "redo": lambda names, _: names.redo(),
}


@dataclass
class _Given:
    words: list[str] = field(default_factory=list)
    file: Path | None = None
    device: str = "auto"
    as_json: bool = False


def _flags(args: Sequence[str]) -> _Given | None:
    """None where help is wanted. Names may begin with anything but --."""
    found = _Given()
    rest = iter(args)
    for word in rest:
        flag, equals, value = word.partition("=")
        if word in ("--help", "-h"):
            return None
        if word == "--":
            found.words += rest
        elif flag in ("--names", "--device"):
            given = value if equals else next(rest, "")
            if not given:
                raise UsageError(flag, "it has no value", f"write {flag} {'FILE' if flag == '--names' else 'WHERE'}")
            if flag == "--names":
                found.file = Path(given)
            else:
                found.device = given
        elif word == "--json":
            found.as_json = True
        elif word.startswith("--"):
            raise UsageError(word, "there is no such flag", nearest(word, ["--names", "--device", "--json", "--help"]))
        else:
            found.words.append(word)
    return found


def _room(given: int, least: int, most: int) -> str:
    wanted = f"{least}" if least == most else f"at least {least}"
    return f"it takes {wanted} {'word' if wanted == '1' else 'words'}, not {given}"
