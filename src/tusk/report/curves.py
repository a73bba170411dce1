"""Curves from the logs of a run: `metrics.jsonl` has the losses, `results.csv` the validations."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tusk.config import LossesConfig
from tusk.config.losses import load_losses

_POINTS = 300  # more than a chart can show

_VALIDATION = (
    (
        "By the labels, for display only",
        "Share of the labelled things that have a point; whose type is right; and both. Higher is better.",
        {"localisation": "found", "classification": "right type", "both": "both"},
    ),
    (
        "Without a label",
        "Measured on images set aside, from 0% to 100%. Agreement: a thing keeps its type when the image is warped. "
        "Explained variance: how much of the images the points alone can redraw. Probability: how sure the types are. "
        "Spread: how much things differ. The largest type's share: near 100%, all things have become one type.",
        {
            "agreement": "agreement of two views",
            "explained_variance": "explained variance",
            "painted": "explained variance",  # its name in the logs of older runs
            "confidence": "probability of the type",
            "spread": "spread of descriptors",
            "largest_share": "share of the largest type",
        },
    ),
    (
        "Reconstruction error",
        "How far the images redrawn from the points alone are from the true ones. Lower is better.",
        {"reconstruction_error": "over the validation images"},
    ),
)


@dataclass(frozen=True)
class Curve:
    """One line: y over the steps."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Chart:
    """Curves in one frame; shares run from 0 to 1."""

    title: str
    curves: tuple[Curve, ...]
    shares: bool = False
    words: str = ""  # what it shows


def read_charts(folder: Path) -> list[Chart]:
    """Whatever was logged in a run's folder, and nothing where nothing was."""
    validations, losses = _results(folder / "results.csv"), _metrics(folder / "metrics.jsonl")
    charts = []
    for title, words, names in _VALIDATION:
        curves = tuple(curve for key, name in names.items() if (curve := _curve(validations, key, name)) is not None)
        if curves:
            charts.append(Chart(title, curves, shares=len(names) > 1, words=words))
    for key in dict.fromkeys(name for entry in losses for name in entry if name not in ("step", "progress")):
        curve = _curve(losses, key, "weighted loss")
        if curve is not None and any(curve.y):
            charts.append(Chart(f"Loss: {key}", (curve,), words=_loss_words(key)))
    return charts


def _loss_words(name: str) -> str:
    """The first sentence about a loss in its settings; logs of older runs may name others."""
    load_losses()
    known = LossesConfig.model_fields.get(name)
    about = "" if known is None else (getattr(known.annotation, "__doc__", None) or "")
    first = " ".join(about.split()).partition(". ")[0].rstrip(".")
    return f"{first}. Lower is better." if first else "A part of what the training lowers."


def _curve(entries: list[dict[str, float]], key: str, name: str) -> Curve | None:
    points = [(entry["step"], entry[key]) for entry in entries if key in entry]
    if len(points) < 2:
        return None
    kept = points[:: max(1, len(points) // _POINTS)]
    if kept[-1] != points[-1]:
        kept.append(points[-1])
    return Curve(name, tuple(step for step, _ in kept), tuple(value for _, value in kept))


def _metrics(path: Path) -> list[dict[str, float]]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    entries = []
    for line in lines:
        try:
            entries.append(_numbers(json.loads(line).items()))
        except (ValueError, AttributeError):
            continue  # a kill, or a writer at this very moment, may have cut a line short
    return [entry for entry in entries if "step" in entry]


def _results(path: Path) -> list[dict[str, float]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = [_numbers(row.items()) for row in csv.DictReader(file)]
    return [row for row in rows if "step" in row]


def _numbers(items: Iterable[tuple[object, object]]) -> dict[str, float]:
    """Those of the values that are finite numbers."""
    numbers: dict[str, float] = {}
    for name, value in items:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        if math.isfinite(number):
            numbers[str(name)] = number
    return numbers
