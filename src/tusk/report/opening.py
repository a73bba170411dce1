"""How a page opens: what was found, how many of each type, in which colours, and what the counts cannot show."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from tusk.detection.draw import type_colours
from tusk.detection.limits import limit_remarks
from tusk.detection.palette import ink_on
from tusk.report.draw import css
from tusk.report.predictions import Predictions

_LISTED = 6  # types in the sentence; all others are in the legend
_LEGEND = 40  # types in the legend


@dataclass(frozen=True)
class Opening:
    """The first lines of a page."""

    heading: str
    words: str  # how many of each type
    legend: str  # HTML
    remarks: tuple[str, ...] = ()  # limits that the counts met


def make_opening(
    predictions: Predictions, types: int, titles: Sequence[str] | None = None, *, tiles: bool = False
) -> Opening:
    """titles: what people call the types; tiles: the images are squares cut out of pictures, and are called so."""
    counts: list[int] = predictions.counts(types).tolist()
    images = _number(len(predictions.sample), "tile" if tiles else "picture")
    most = sorted((number for number in range(types) if counts[number]), key=lambda number: (-counts[number], number))
    called = [f"type {number}" for number in range(types)] if titles is None else titles
    listed = [f"{counts[number]:,} of {called[number]}" for number in most[:_LISTED]]
    if len(most) > _LISTED:
        listed.append(f"{sum(counts[number] for number in most[_LISTED:]):,} of {len(most) - _LISTED} other types")
    words = f"{' and '.join([', '.join(listed[:-1]), listed[-1]]) if len(listed) > 1 else listed[0]}." if listed else ""
    return Opening(
        heading=f"Found {_number(sum(counts), 'thing')} in {images}",
        words=words,
        legend=_legend(counts, called),
        remarks=tuple(limit_remarks(predictions.limits, predictions.settings.min_gain)),
    )


def number_chip(number: int, types: int) -> str:
    """A type's number on a field of its colour: what stands for the type everywhere on the page."""
    colour = type_colours(types)[number]
    return f'<i class="chip" style="background:{css(colour)};color:{css(ink_on(colour))}">{number}</i>'


def _legend(counts: list[int], titles: Sequence[str]) -> str:
    total = max(1, sum(counts))
    most = sorted(range(len(counts)), key=lambda number: (-counts[number], number))[:_LEGEND]
    items = "".join(
        f"<li{'' if counts[number] else ' class=none'}>{number_chip(number, len(counts))}<span>"
        f"{_name(titles[number], number)}<b>{counts[number]:,}</b> {counts[number] / total:.0%}</span></li>"
        for number in sorted(most)
    )
    if len(counts) > _LEGEND:
        items += f"<li>and {len(counts) - _LEGEND} more types</li>"
    note = (
        "Colour and number of each type, how many things of it were found, and their share of all. A type is a group "
        "of things that look alike to the network; it has a number because nobody told the network a name."
    )
    return f'<ul class="counts card">{items}</ul><p class="soft note">{html.escape(note)}</p>'


def _name(title: str, number: int) -> str:
    """Of a type that people have given one."""
    return "" if title == f"type {number}" else f"{html.escape(title)} "


def _number(count: int, word: str) -> str:
    return f"1 {word}" if count == 1 else f"{count:,} {word}s"
