"""One line of the verdict, and the verdict that all lines together give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "bad"]
_ORDER: tuple[Level, ...] = ("bad", "warn", "ok")
_NAMED = 3  # reasons in the verdict


@dataclass(frozen=True)
class Remark:
    """One line: a fact, as a clause without its full stop, and what to do about it."""

    level: Level
    fact: str
    advice: str = ""
    minor: bool = False  # a warning that is no reason to doubt the points

    @property
    def well(self) -> bool:
        return self.level == "ok"

    @property
    def words(self) -> str:
        return f"{self.fact}: {self.advice}." if self.advice else f"{self.fact}."


def in_order(remarks: Sequence[Remark]) -> list[Remark]:
    """What is wrong first."""
    return sorted(remarks, key=lambda remark: _ORDER.index(remark.level))


@dataclass(frozen=True)
class Verdict:
    """All lines in one: bad is no, warn is yes with care, ok is yes."""

    level: Level
    sentence: str


def verdict_of(remarks: Sequence[Remark]) -> Verdict:
    """No where any line is bad, with care where one warns that is not minor, else yes."""
    bad = [remark for remark in remarks if remark.level == "bad"]
    warn = [remark for remark in remarks if remark.level == "warn"]
    if bad:
        return Verdict("bad", f"Do not trust these points yet: {_reasons(bad)}")
    if serious := [remark for remark in warn if not remark.minor]:
        return Verdict("warn", f"Use these points with care: {_reasons(serious)}")
    passed = f"These points look sound: {len(remarks) - len(warn)} of {len(remarks)} checks passed"
    return Verdict("ok", f"{passed}. A minor one did not: {_reasons(warn)}" if warn else f"{passed}.")


def _reasons(remarks: Sequence[Remark]) -> str:
    """Facts, and the first advice that there is."""
    facts = "; ".join(_first(remark.fact, str.lower) for remark in remarks[:_NAMED])
    advice = next((remark.advice for remark in remarks if remark.advice), "")
    return f"{facts}. {_first(advice, str.upper)}." if advice else f"{facts}."


def _first(words: str, change: Callable[[str], str]) -> str:
    """The first letter made small or large."""
    return change(words[:1]) + words[1:]
