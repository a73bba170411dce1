"""A self-contained HTML page: no scripts, no outside files, nothing to install to read it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tusk.files import write_whole
from tusk.report.draw import png_uri

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --soft: #667085; --paper: #fbfaf7; --card: #fff; --line: #e4e1d8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eceae4; --soft: #a3a8b3; --paper: #14161a; --card: #1d2026; --line: #32363f; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 8px; }
h2 { font-size: 1.25rem; margin: 40px 0 6px; }
p { margin: 0 0 14px; max-width: 70ch; }
.soft { color: var(--soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0; }
.figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.figure b { display: block; font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }
.rows { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 16px; }
.row { display: grid; grid-template-columns: repeat(3, 1fr); gap: 6px; background: var(--card); padding: 8px;
       border: 1px solid var(--line); border-radius: 10px; }
.types { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 12px; }
.type { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px; min-width: 0; }
.type header { display: flex; gap: 8px; align-items: center; font-size: .9rem; margin-bottom: 6px; flex-wrap: wrap; }
.dot { width: 12px; height: 12px; border-radius: 50%; flex: none; }
.crops { display: grid; grid-template-columns: repeat(4, 1fr); gap: 3px; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: .8rem; color: var(--soft); text-align: center; }
img { display: block; width: 100%; border-radius: 4px; }
.type img { image-rendering: pixelated; }
svg { display: block; width: 100%; height: auto; background: var(--card); border: 1px solid var(--line);
      border-radius: 10px; }
"""


@dataclass(frozen=True)
class Figure:
    """One number and what it means."""

    value: str
    meaning: str


@dataclass(frozen=True)
class PictureRow:
    """Pictures that belong together, each with its caption."""

    pictures: tuple[tuple[str, Image.Image], ...]


@dataclass(frozen=True)
class TypeCard:
    """One type: its colour, how often it was found, what it decodes to, and its most typical finds."""

    number: int
    colour: tuple[int, int, int]
    count: int
    decoded: Image.Image
    crops: tuple[Image.Image, ...]


@dataclass(frozen=True)
class Curve:
    """One line of a plot: y over x."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Page:
    """All that stands on the page, from top to bottom."""

    title: str
    words: Sequence[str]
    figures: Sequence[Figure]
    rows: Sequence[PictureRow]
    types: Sequence[TypeCard]
    curves: Sequence[Curve]


def write_page(path: Path, page: Page) -> None:
    """Write the page, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, render_page(page).encode())


def render_page(page: Page) -> str:
    """The page as HTML."""
    parts = [f"<h1>{html.escape(page.title)}</h1>"]
    parts += [f"<p>{html.escape(text)}</p>" for text in page.words]
    parts.append('<div class="figures">' + "".join(_figure(figure) for figure in page.figures) + "</div>")
    if page.rows:
        parts.append("<h2>What it sees</h2>")
        parts.append('<p class="soft">Points are coloured and numbered by the type that was learnt for them.</p>')
        parts.append('<div class="rows">' + "".join(_row(row) for row in page.rows) + "</div>")
    if page.types:
        parts.append("<h2>The types</h2>")
        parts.append(
            '<p class="soft">The large picture is what a type\'s prototype alone is decoded to; below it its most '
            "typical finds.</p>"
        )
        parts.append('<div class="types">' + "".join(_type(card) for card in page.types) + "</div>")
    if page.curves:
        parts.append("<h2>How it learnt</h2>")
        parts += [_plot(curve) for curve in page.curves if curve.x]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(page.title)}</title><style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _figure(figure: Figure) -> str:
    return (
        f'<div class="figure"><b>{html.escape(figure.value)}</b>'
        f'<span class="soft">{html.escape(figure.meaning)}</span></div>'
    )


def _image(picture: Image.Image, words: str) -> str:
    return f'<img src="{png_uri(picture)}" alt="{html.escape(words)}">'


def _row(row: PictureRow) -> str:
    cells = (
        f"<figure>{_image(picture, caption)}<figcaption>{html.escape(caption)}</figcaption></figure>"
        for caption, picture in row.pictures
    )
    return f'<div class="row">{"".join(cells)}</div>'


def _type(card: TypeCard) -> str:
    colour = "rgb({},{},{})".format(*card.colour)
    crops = "".join(_image(picture, f"a find of type {card.number}") for picture in card.crops)
    return (
        f'<div class="type"><header><span class="dot" style="background:{colour}"></span>'
        f'<b>Type {card.number}</b><span class="soft">{card.count} found</span></header>'
        f"{_image(card.decoded, f'what type {card.number} looks like')}"
        f'<div class="crops" style="margin-top:6px">{crops}</div></div>'
    )


def _plot(curve: Curve) -> str:
    """A line in an SVG with its first, smallest and last value written out."""
    width, height, edge = 1100, 220, 40
    low, high = min(curve.y), max(curve.y)
    left, right = min(curve.x), max(curve.x)
    points = " ".join(
        f"{edge + (x - left) / ((right - left) or 1) * (width - 2 * edge):.1f},"
        f"{height - edge - (y - low) / ((high - low) or 1) * (height - 2 * edge):.1f}"
        for x, y in zip(curve.x, curve.y, strict=True)
    )
    words = f"{html.escape(curve.name)}: {curve.y[0]:.4g} at first, {curve.y[-1]:.4g} at the end"
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(curve.name)}">'
        f'<polyline points="{points}" fill="none" stroke="#c2410c" stroke-width="2.5" stroke-linejoin="round"/>'
        f'<g fill="currentColor" font-size="15" font-family="system-ui, sans-serif">'
        f'<text x="{edge}" y="24">{words}</text>'
        f'<text x="{edge}" y="{height - 12}">step {curve.x[0]:.0f}</text>'
        f'<text x="{width - edge}" y="{height - 12}" text-anchor="end">step {curve.x[-1]:.0f}</text></g></svg>'
    )
