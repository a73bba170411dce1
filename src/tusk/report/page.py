"""A self-contained HTML page: no scripts, no outside files, nothing to install to read it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tusk.io import atomic_write
from tusk.report.opening import Opening
from tusk.report.remark import Remark, Verdict
from tusk.report.style import STYLE

_KINDS = {"ok": "well", "warn": "amiss", "bad": "bad"}  # the style's names of the levels


@dataclass(frozen=True)
class Figure:
    """One number and what it means."""

    value: str
    meaning: str


@dataclass(frozen=True)
class Fact:
    """One thing about the run."""

    name: str
    value: str


@dataclass(frozen=True)
class Section:
    """A part of the page; its body is HTML already, its words are not."""

    anchor: str
    title: str
    words: str
    body: str


@dataclass(frozen=True)
class Page:
    """All that is on the page, from top to bottom."""

    title: str
    words: Sequence[str]
    figures: Sequence[Figure]
    facts: Sequence[Fact]
    remarks: Sequence[Remark]
    sections: Sequence[Section]
    opening: Opening | None = None
    verdict: Verdict | None = None


def write_page(path: Path, page: Page) -> None:
    """Write the page, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file name need not be valid Unicode.
    atomic_write(path, render_page(page).encode("utf-8", "backslashreplace"))


def render_page(page: Page) -> str:
    """The page as HTML."""
    remarks = "".join(
        f'<li class="{_KINDS[remark.level]}"><span>{html.escape(remark.words)}</span></li>' for remark in page.remarks
    )
    state = Section(
        "state",
        "How it is doing",
        "What the network did well, and what to do about the rest.",
        f'<ul class="remarks card">{remarks}</ul>',
    )
    facts = "".join(f"<dt>{html.escape(fact.name)}</dt><dd>{html.escape(fact.value)}</dd>" for fact in page.facts)
    run = Section(
        "run",
        "The run",
        "How the network came about: what is needed to make it again.",
        f'<dl class="facts card">{facts}</dl>',
    )
    sections = [section for section in page.sections if section.body]
    links = "".join(
        f'<a href="#{section.anchor}">{html.escape(section.title)}</a>' for section in (state, run, *sections)
    )
    lead, *rest = page.words or [""]
    figures = "".join(
        f'<div class="card"><b>{html.escape(figure.value)}</b>'
        f'<span class="soft">{html.escape(figure.meaning)}</span></div>'
        for figure in page.figures
    )
    body = [
        _opened(page),
        *([] if page.verdict is None else [_verdict(page.verdict)]),
        f'<p class="lead">{html.escape(lead)}</p>',
        *(f'<p class="soft">{html.escape(text)}</p>' for text in rest),
        f'<div class="figures">{figures}</div>',
        f'<div class="overview">{_section(state)}{_section(run)}</div>',
        *(_section(section) for section in sections),
        "<footer>Written by tusk. This page is complete: it loads nothing and can be sent as one file.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Without an icon of its own a browser would ask for one.
        '<link rel="icon" href="data:,">'
        f"<title>{html.escape(page.title)}</title><style>{STYLE}</style></head>\n"
        f"<body><nav><div><b>tusk</b>{links}</div></nav><main>\n" + "\n".join(body) + "\n</main></body></html>\n"
    )


def _opened(page: Page) -> str:
    """What was found, in large letters; where nothing is known yet, what the page is about."""
    opening = page.opening
    if opening is None:
        return f"<h1>{html.escape(page.title)}</h1>"
    remarks = "".join(f"<li><span>{html.escape(words)}</span></li>" for words in opening.remarks)
    return (
        f'<p class="kicker">{html.escape(page.title)}</p><h1>{html.escape(opening.heading)}</h1>'
        f'<p class="split">{html.escape(opening.words)}</p>{opening.legend}'
        + (f'<ul class="remarks card limits">{remarks}</ul>' if remarks else "")
    )


def _verdict(verdict: Verdict) -> str:
    return f'<p class="verdict {_KINDS[verdict.level]}">{html.escape(verdict.sentence)}</p>'


def _section(section: Section) -> str:
    words = f'<p class="soft">{html.escape(section.words)}</p>' if section.words else ""
    return f'<section id="{section.anchor}"><h2>{html.escape(section.title)}</h2>{words}{section.body}</section>'
