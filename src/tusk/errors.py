"""The only exceptions that a user ever sees: one sentence of what, why and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_BAD_DATA = 3
EXIT_STOPPED = 130


class UserError(Exception):
    """Something that the user can put right.

    what: the file or setting that is at fault; why: what is wrong with it; fix: what to do about it.
    """

    exit_code = EXIT_FAILED
    is_said = False  # another process says it

    def __init__(self, what: str, why: str, fix: str) -> None:
        self.what, self.why, self.fix = what, why, fix
        sentence = visible(f"{what}: {why}; {fix}")
        super().__init__(sentence if sentence.endswith("?") else sentence + ".")


class UsageError(UserError):
    """A setting or flag that cannot be used."""

    exit_code = EXIT_USAGE


class DataError(UserError):
    """A file or folder that cannot be read as what it should be."""

    exit_code = EXIT_BAD_DATA


class StoppedError(UserError):
    """The user or the system asked to stop; what was done is saved."""

    exit_code = EXIT_STOPPED


class RefusedElsewhereError(UserError):
    """Another of several processes was refused something, and says so: this one only ends with the same exit code."""

    is_said = True

    def __init__(self, what: str, why: str, fix: str, exit_code: int) -> None:
        super().__init__(what, why, fix)
        self.exit_code = exit_code


def nearest(word: str, choices: Iterable[str]) -> str:
    """What to suggest instead of a word that is not among the choices: the closest one, or all of them."""
    known, word = sorted(choices), word[:100]
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else "choose one of " + ", ".join(known)


def visible(text: str) -> str:
    """The text in one line: line ends, terminal codes and bytes that are no text, all of which a file's name may hold,
    are shown as Python writes them."""
    return _NOT_SHOWN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def shortened(text: str, most: int = 60) -> str:
    """Enough of a long text to recognise it."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
