"""Curves from the log of a run."""

from __future__ import annotations

import json
from pathlib import Path

from tusk.report.page import Curve

_POINTS = 400  # more than a page can show


def read_curve(metrics: Path, key: str, name: str) -> Curve:
    """One term of `metrics.jsonl` over the steps; empty where nothing was logged."""
    steps, values = [], []
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    for line in lines[:: max(1, len(lines) // _POINTS)]:
        entry = json.loads(line)
        if key in entry:
            steps.append(float(entry["step"]))
            values.append(float(entry[key]))
    return Curve(name, steps, values)
