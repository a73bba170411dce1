"""Pictures on a page: images with their points, cards of types, images taken apart into layers."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tusk.detection.draw import type_colours
from tusk.report.draw import FloatArray, UInt8Array, css, draw_score, picture_uri, to_bytes
from tusk.report.gallery import TypeCard
from tusk.report.layers import LayeredImage
from tusk.report.predictions import Predictions

_NUMBERED = 20  # keypoints; more of them get no numbers, which would cover the image
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
    """Input, points, score map and reconstruction side by side."""
    panels = (
        ("image", picture(example.image, "an image")),
        ("points and types", _points(example, types)),
        ("score map", picture(draw_score(example.score_map), "its score map", smooth=True)),
        (f"reconstruction, error {example.error:.4f}", picture(example.reconstruction, "its reconstruction")),
    )
    cells = "".join(f"<figure>{drawn}<figcaption>{words}</figcaption></figure>" for words, drawn in panels)
    return f'<div class="example card">{cells}</div>'


def _points(example: Example, types: int) -> str:
    """The image with dots over it, drawn as shapes: sharp at any size, and each tells its type and score."""
    height, width = example.image.shape[:2]
    unit = max(height, width) / 100
    numbered = len(example.labels) <= _NUMBERED
    radius = (2.8 if numbered else 2.0) * unit
    colours = type_colours(types)
    dots, numbers = [], []
    for (x, y), label, score in zip(example.xy.tolist(), example.labels, example.scores, strict=True):
        # The centre of pixel x lies at x + 0.5 of the drawing.
        dots.append(
            f'<circle cx="{x + 0.5:.2f}" cy="{y + 0.5:.2f}" r="{radius:.2f}" fill="{css(colours[label])}">'
            f"<title>type {label}, score {score:.2f}</title></circle>"
        )
        # Beside the dot, on the side where there is room.
        left = x > width - 12 * unit
        place = x + 0.5 + (-3.8 if left else 3.8) * unit
        anchor = ' text-anchor="end"' if left else ""
        level = min(max(y + 0.5 - 1.5 * unit, 7 * unit), height - unit)
        numbers.append(f'<text x="{place:.2f}" y="{level:.2f}"{anchor} fill="{css(colours[label])}">{label}</text>')
    shown = "".join(numbers) if numbered else ""
    small = " pixels" if max(height, width) <= _PIXELS else ""
    return (
        f'<svg class="points" viewBox="0 0 {width} {height}" role="img" aria-label="its keypoints">'
        f'<image class="dim{small}" width="{width}" height="{height}" href="{picture_uri(example.image)}"/>'
        f'<g stroke-width="{0.7 * unit:.2f}">{"".join(dots)}</g>'
        f'<g class="numbers" font-size="{7 * unit:.2f}" stroke-width="{1.8 * unit:.2f}">{shown}</g></svg>'
    )


def type_html(card: TypeCard, types: int, meaning: str | None) -> str:
    """A type's colour and number, the decoding of its prototype, its surest detections, and their number."""
    crops = "".join(picture(crop, f"a detection of type {card.number}") for crop in card.crops)
    meant = f'<span class="tag">{html.escape(meaning)}</span>' if meaning is not None else ""
    idle = " idle" if card.count == 0 else ""
    return (
        f'<article class="type card{idle}" style="--own:{css(type_colours(types)[card.number])}">'
        f"<header><i></i><b>Type {card.number}</b>{meant}</header>"
        f'<div class="alone">{picture(card.alone, f"type {card.number} decoded alone")}</div>'
        f'<div class="crops">{crops}</div>'
        f'<p class="soft"><b>{card.count:,}</b> found, {card.share:.1%}</p></article>'
    )


def layered_html(image: LayeredImage, types: int) -> str:
    """An image, its masks, and under them each layer with its alpha."""
    whole = [
        ("image", picture(image.image, "an image")),
        ("reconstruction", picture(image.reconstruction, "its reconstruction")),
        ("masks by type", picture(image.mask, "which layer each pixel belongs to")),
    ]
    if image.true_mask is not None:
        whole.append(("true masks", picture(image.true_mask, "the true masks")))
    cells = "".join(f"<figure>{drawn}<figcaption>{words}</figcaption></figure>" for words, drawn in whole)
    colours = type_colours(types)
    layers = "".join(
        f'<figure><div class="pair">{picture(layer.picture, "a layer")}{picture(layer.alpha, "its alpha")}</div>'
        f'<figcaption><i style="background:{css(colours[layer.label])}"></i>type {layer.label}, owns {layer.share:.0%}'
        "</figcaption></figure>"
        for layer in image.layers
    )
    return f'<div class="layered card"><div class="whole">{cells}</div><div class="layers">{layers}</div></div>'


def picture(pixels: UInt8Array, words: str, *, smooth: bool = False) -> str:
    """An image inside the page."""
    height, width = pixels.shape[:2]
    small = ' class="pixels"' if max(height, width) <= _PIXELS and not smooth else ""
    return f'<img{small} src="{picture_uri(pixels)}" width="{width}" height="{height}" alt="{html.escape(words)}">'


def joined(parts: Sequence[str], style: str) -> str:
    return f'<div class="{style}">{"".join(parts)}</div>'
