"""Charts, scatters and tables as HTML with SVG inside: they grow with the page, their words do not."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tusk.detection.palette import ink_on
from tusk.report.curves import Chart, Curve
from tusk.report.draw import css

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.int64]
Colour = tuple[int, int, int]

# Colours of Okabe and Ito; dashes too, so that lines are told apart without colours.
_LINES = ("var(--accent)", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = ("none", "7 4", "2 3", "10 3 2 3", "4 2", "1 4")
_LEGEND = 24  # names under a scatter


@dataclass(frozen=True)
class Scatter:
    """Points on a plane, coloured by what they are; crosses are the prototypes."""

    title: str
    words: str
    places: FloatArray  # (n, 2) in [0, 1]
    classes: IntArray  # (n,), -1 for none
    names: tuple[str, ...]
    colours: Sequence[Colour]
    crosses: FloatArray  # (M, 2)


@dataclass(frozen=True)
class Confusion:
    """How often keypoints of a type lie on things of a class."""

    title: str
    names: tuple[str, ...]  # of the columns
    types: tuple[int, ...]  # of the rows
    counts: IntArray  # (rows, columns)
    colours: Sequence[Colour]  # of the rows
    right: tuple[int, ...]  # the column that belongs to each row, -1 for none


def chart_html(chart: Chart) -> str:
    """Lines over the steps; the words stand beside the drawing, so that it can be stretched."""
    values = [value for curve in chart.curves for value in curve.y]
    low, high = (0.0, 1.0) if chart.shares else (min(0.0, *values), max(values))
    last = max(curve.x[-1] for curve in chart.curves)
    first = min(curve.x[0] for curve in chart.curves)
    lines = "".join(_line(curve, place, (first, last), (low, high)) for place, curve in enumerate(chart.curves))
    ticks = "".join(f'<path class="grid" d="M0 {y}H400"/>' for y in (0, 50, 100, 150, 200))
    legend = "".join(
        f'<li><svg class="sample" viewBox="0 0 24 4"><path d="M0 2H24" style="{_stroke(place)}"/></svg>'
        f"{html.escape(curve.name)} <b>{_number(curve.y[-1], chart.shares)}</b></li>"
        for place, curve in enumerate(chart.curves)
    )
    return (
        f'<figure class="chart card"><h3>{html.escape(chart.title)}</h3>'
        f'<p class="soft">{html.escape(chart.words)}</p><div class="plot">'
        f'<span class="high">{_number(high, chart.shares)}</span><span class="low">{_number(low, chart.shares)}</span>'
        f'<svg viewBox="0 0 400 200" preserveAspectRatio="none" role="img" aria-label="{html.escape(chart.title)}">'
        f"{ticks}{lines}</svg></div>"
        f'<p class="axis"><span>step {first:,.0f}</span><span>step {last:,.0f}</span></p>'
        f'<ul class="legend">{legend}</ul></figure>'
    )


def _stroke(place: int) -> str:
    """The style of the line at that place of a chart."""
    return f"stroke:{_LINES[place % len(_LINES)]};stroke-dasharray:{_DASHES[place % len(_DASHES)]}"


def _line(curve: Curve, place: int, steps: tuple[float, float], values: tuple[float, float]) -> str:
    wide, tall = (steps[1] - steps[0]) or 1.0, (values[1] - values[0]) or 1.0
    points = " ".join(
        f"{400 * (x - steps[0]) / wide:.1f},{200 - 200 * (y - values[0]) / tall:.1f}"
        for x, y in zip(curve.x, curve.y, strict=True)
    )
    return f'<polyline points="{points}" style="{_stroke(place)}"/>'


def _number(value: float, share: bool) -> str:
    if share:
        return f"{value:.0%}"
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.3g}"


def scatter_html(scatter: Scatter) -> str:
    """A square of dots, coloured, with a cross for each prototype and a legend where the classes are few."""
    side, edge = 500.0, 12.0

    def at(place: FloatArray) -> tuple[float, float]:
        return edge + float(place[0]) * (side - 2 * edge), edge + float(place[1]) * (side - 2 * edge)

    groups = []
    for number in sorted(set(scatter.classes.tolist())):
        # A path of dots: a line of no length with round ends.
        dots = "".join("M{:.1f} {:.1f}h0".format(*at(place)) for place in scatter.places[scatter.classes == number])
        name = scatter.names[number] if number >= 0 else "on nothing"
        stroke = css(scatter.colours[number]) if number >= 0 else "var(--faint)"
        groups.append(f'<path class="dots" d="{dots}" stroke="{stroke}"><title>{html.escape(name)}</title></path>')
    crosses = "".join("M{:.1f} {:.1f}m-7 0h14m-7 -7v14".format(*at(place)) for place in scatter.crosses)
    present = [number for number in sorted(set(scatter.classes.tolist())) if number >= 0]
    legend = "".join(
        f'<li><i style="background:{css(scatter.colours[number])}"></i>{html.escape(scatter.names[number])}</li>'
        for number in present[:_LEGEND]
    )
    if len(present) > _LEGEND:
        legend += f"<li>and {len(present) - _LEGEND} more</li>"
    return (
        f'<figure class="scatter card"><h3>{html.escape(scatter.title)}</h3>'
        f'<p class="soft">{html.escape(scatter.words)}</p>'
        f'<svg viewBox="0 0 {side:.0f} {side:.0f}" role="img" aria-label="{html.escape(scatter.title)}">'
        f'{"".join(groups)}<path class="halo" d="{crosses}"/><path class="cross" d="{crosses}"/></svg>'
        f'<ul class="legend">{legend}</ul></figure>'
    )


def confusion_html(confusion: Confusion) -> str:
    """A table: rows are types, columns classes, the darker the larger the share of its row."""
    head = "".join(f'<th scope="col"><span>{html.escape(name)}</span></th>' for name in confusion.names)
    rows = []
    for number, counts, colour, right in zip(
        confusion.types, confusion.counts, confusion.colours, confusion.right, strict=True
    ):
        total = max(1, int(counts.sum()))
        cells = "".join(_cell(count, count / total, column == right) for column, count in enumerate(counts.tolist()))
        chip = f'<i class="chip" style="background:{css(colour)};color:{css(ink_on(colour))}">{number}</i>'
        rows.append(f'<tr><th scope="row">{chip}type {number}</th>{cells}</tr>')
    slanted = " slanted" if max(len(name) for name in confusion.names) > 4 else ""
    return (
        f'<figure class="card confusion{slanted}"><h3>{html.escape(confusion.title)}</h3><div class="scroll"><table>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></figure>"
    )


def _cell(count: int, share: float, right: bool) -> str:
    style = f"{'right' if right else ''}{' full' if share > 0.5 else ''}".strip()
    return f'<td class="{style}" style="background:rgb(var(--heat) / {share:.2f})">{count or ""}</td>'
