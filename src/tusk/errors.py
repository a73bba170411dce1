"""The only exceptions that a user ever sees: one sentence of what, why and what to do."""

from __future__ import annotations

import difflib
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

    def __init__(self, what: str, why: str, fix: str) -> None:
        self.what, self.why, self.fix = what, why, fix
        sentence = f"{what}: {why}; {fix}"
        super().__init__(sentence if sentence.endswith("?") else sentence + ".")


class UsageError(UserError):
    """A setting or flag that cannot be used."""

    exit_code = EXIT_USAGE


class DataError(UserError):
    """A file or folder that cannot be read as what it should be."""

    exit_code = EXIT_BAD_DATA


def nearest(word: str, choices: Iterable[str]) -> str:
    """What to suggest instead of a word that is not among the choices: the closest one, or all of them."""
    known = sorted(choices)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else "choose one of " + ", ".join(known)
