"""Pictures on a page: images with their points, cards of types, images taken apart into layers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tusk.detection.draw import type_colours
from tusk.detection.markers import emptiest_corner, marker_sizes, place_labels
from tusk.detection.palette import ink_on
from tusk.report.draw import FloatArray, UInt8Array, css, draw_score, picture_uri, to_bytes
from tusk.report.gallery import TypeCard
from tusk.report.layers import LayeredImage
from tusk.report.opening import number_chip
from tusk.report.predictions import Predictions

_DRAWN = 360.0  # pixels across that an image with its points has on the page
_PIXELS = 128  # images up to this side are shown with their pixels as squares


@dataclass(frozen=True)
class Example:
    """One image with its detections."""

    image: UInt8Array  # (H, W, 3)
    score_map: FloatArray  # (H/s, W/s)
    reconstruction: UInt8Array  # (H, W, 3)
    xy: FloatArray  # (n, 2)
    labels: tuple[int, ...]
    scores: tuple[float, ...]
    error: float


def examples(predictions: Predictions) -> list[Example]:
    """Those images whose maps were kept."""
    shown = []
    for index in range(len(predictions.reconstruction)):
        found = predictions.found[index]
        shown.append(
            Example(
                image=np.ascontiguousarray(predictions.sample.images[index].permute(1, 2, 0).numpy()),
                score_map=predictions.score_map[index].numpy(),
                reconstruction=to_bytes(predictions.reconstruction[index].numpy()),
                xy=predictions.xy[index][found].numpy(),
                labels=tuple(predictions.label[index][found].tolist()),
                scores=tuple(predictions.score[index][found].tolist()),
                error=float(predictions.error[index]),
            )
        )
    return shown


def example_html(example: Example, types: int) -> str:
    """Points large; under them the image, the score map and the reconstruction."""
    count = "1 thing" if len(example.labels) == 1 else f"{len(example.labels)} things"
    panels = (
        (f"points: {count}", _points(example, types)),
        ("image", picture(example.image, "an image")),
        ("score map", picture(draw_score(example.score_map), "its score map", smooth=True)),
        (f"reconstruction, error {example.error:.4f}", picture(example.reconstruction, "its reconstruction")),
    )
    cells = "".join(f"<figure>{drawn}<figcaption>{words}</figcaption></figure>" for words, drawn in panels)
    return f'<div class="example card">{cells}</div>'


def _points(example: Example, types: int) -> str:
    """The image with dots and numbers over it, drawn as shapes: sharp at any size, and each tells its type and score.

    Sizes and places are those of overlays, for a drawing of as many pixels as it has on the page.
    """
    times = _DRAWN / max(example.image.shape[:2])
    height, width = (side * times for side in example.image.shape[:2])
    xy = (example.xy.astype(np.float64) + 0.5) * times  # the centre of pixel x lies at x + 0.5
    sizes, colours = marker_sizes(width, height, xy), type_colours(types)
    total = f"{len(xy)} found"
    panel = (sizes.panel * (0.62 * len(total) + 0.8), 1.7 * sizes.panel)
    left, top = emptiest_corner(xy, panel, width, height)
    fields = np.array([sizes.label(len(str(label))) for label in example.labels], float).reshape(-1, 2)
    taken = np.array([[left, top, left + panel[0], top + panel[1]]])
    corners = place_labels(xy, fields, width, height, sizes.dot, taken)
    dots, numbers = [], []
    for (x, y), label, score in zip(xy.tolist(), example.labels, example.scores, strict=True):
        dots.append(
            f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{sizes.dot + sizes.line / 2:.1f}"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{sizes.dot:.1f}" fill="{css(colours[label])}">'
            f"<title>type {label}, score {score:.2f}</title></circle>"
        )
    for (x, y), (wide, tall), label in zip(corners.tolist(), fields.tolist(), example.labels, strict=True):
        numbers.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" rx="{sizes.text / 4:.1f}" '
            f'fill="{css(colours[label])}"/><text x="{x + wide / 2:.1f}" y="{y + 0.86 * tall - 0.08 * sizes.text:.1f}" '
            f'fill="{css(ink_on(colours[label]))}">{label}</text>'
        )
    small = " pixels" if max(example.image.shape[:2]) <= _PIXELS else ""
    return (
        f'<svg class="points" viewBox="0 0 {width:.1f} {height:.1f}" role="img" aria-label="its points: {total}">'
        f'<image class="{small.strip()}" width="{width:.1f}" height="{height:.1f}" '
        f'href="{picture_uri(example.image)}"/>'
        f'<rect class="shade" x="{left:.1f}" y="{top:.1f}" width="{panel[0]:.1f}" height="{panel[1]:.1f}"/>'
        f'<g class="dots-of-types" stroke-width="{sizes.line / 2:.2f}">{"".join(dots)}</g>'
        f'<g class="numbers" font-size="{sizes.text:.1f}">{"".join(numbers)}</g>'
        f'<text class="total" x="{left + 0.4 * sizes.panel:.1f}" y="{top + 1.2 * sizes.panel:.1f}" '
        f'font-size="{sizes.panel:.1f}">{total}</text></svg>'
    )


def type_html(card: TypeCard, types: int, meaning: str | None) -> str:
    """A type's colour and number, the decoding of its prototype, its surest detections, and their number."""
    crops = "".join(picture(crop, f"a detection of type {card.number}") for crop in card.crops)
    meant = f'<span class="tag">{html.escape(meaning)}</span>' if meaning is not None else ""
    idle = " idle" if card.count == 0 else ""
    return (
        f'<article class="type card{idle}" style="--own:{css(type_colours(types)[card.number])}">'
        f"<header>{number_chip(card.number, types)}<b>Type {card.number}</b>{meant}</header>"
        f'<div class="alone">{picture(card.alone, f"type {card.number} decoded alone")}</div>'
        f'<div class="crops">{crops}</div>'
        f'<p class="soft"><b>{card.count:,}</b> found, {card.share:.1%} of all</p></article>'
    )


def layered_html(image: LayeredImage, types: int) -> str:
    """An image, its masks, and under them each layer with its alpha."""
    whole = [
        ("image", picture(image.image, "an image")),
        ("reconstruction", picture(image.reconstruction, "its reconstruction")),
        ("masks, by type", picture(image.mask, "which layer each pixel belongs to")),
    ]
    if image.true_mask is not None:
        whole.append(("true masks", picture(image.true_mask, "the true masks")))
    cells = "".join(f"<figure>{drawn}<figcaption>{words}</figcaption></figure>" for words, drawn in whole)
    layers = "".join(
        f'<figure><div class="pair">{picture(layer.picture, "a layer")}{picture(layer.alpha, "its alpha")}</div>'
        f"<figcaption>{number_chip(layer.label, types)} has {layer.share:.0%} of the pixels</figcaption></figure>"
        for layer in image.layers
    )
    return f'<div class="layered card"><div class="whole">{cells}</div><div class="layers">{layers}</div></div>'


def picture(pixels: UInt8Array, words: str, *, smooth: bool = False) -> str:
    """An image inside the page."""
    height, width = pixels.shape[:2]
    small = ' class="pixels"' if max(height, width) <= _PIXELS and not smooth else ""
    return f'<img{small} src="{picture_uri(pixels)}" width="{width}" height="{height}" alt="{html.escape(words)}">'


def panels_html(panels: Mapping[str, str]) -> str:
    """What each of the pictures in a group shows, by the words under it."""
    rows = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(words)}</dd>" for name, words in panels.items())
    return f'<dl class="panels">{rows}</dl>'


def joined(parts: Sequence[str], style: str) -> str:
    return f'<div class="{style}">{"".join(parts)}</div>'
