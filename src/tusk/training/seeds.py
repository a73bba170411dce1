"""Several trainings that differ in their seed alone, of which the best is kept, judged without a label.

The score is `ValidationFigures.score`: the mutual information of the types of two views, times the explained variance,
on images that training does not use. The docs say how well it tracks accuracy.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from tusk.errors import DataError
from tusk.io import atomic_write

_FILE = "seeds.json"


def stored_seeds(folder: Path) -> list[int]:
    """The seeds of a folder in which several are trained; none where it holds a single run."""
    path = folder / _FILE
    if not path.is_file():
        return []
    try:
        return [int(seed) for seed in json.loads(path.read_text(encoding="utf-8"))["seeds"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(str(path), f"it cannot be read ({error})", "start the training anew") from error


def store_seeds(folder: Path, seeds: list[int]) -> None:
    """Write down which seeds are to be trained in a folder."""
    atomic_write(folder / _FILE, json.dumps({"seeds": seeds}).encode())


def train_seeds(
    folder: Path, seeds: list[int], train: Callable[[int, Path], Path], *, writes: bool, say: Callable[[str], None]
) -> Path:
    """Train each seed in a folder of its own by `train(seed, folder) -> model`; -> the model of the best.

    What is done already is not done again. Only the process that `writes` compares and copies.
    """
    models: dict[int, Path] = {}
    for seed in seeds:
        place = folder / f"seed-{seed}"
        say(f"Seed {seed}, {len(models) + 1} of {len(seeds)}")
        models[seed] = train(seed, place)
    kept = folder / "model.safetensors"
    if not writes:
        return kept
    from tusk.model.storage import load_model

    facts = {seed: load_model(path).provenance for seed, path in models.items()}
    # A run without a score (no types yet) loses against any that has one; among equals the first wins.
    best = max(seeds, key=lambda seed: -1.0 if facts[seed]["score"] is None else float(facts[seed]["score"]))
    rows = io.StringIO()
    table = csv.writer(rows, lineterminator="\n")
    table.writerow(["seed", "score", "minutes", "steps", "kept"])
    for seed, fact in facts.items():
        table.writerow([seed, fact["score"], fact["minutes"], fact["steps"], seed == best])
        say(f"Seed {seed}: score {fact['score']}, {fact['minutes']} minutes{', kept' if seed == best else ''}")
    atomic_write(folder / "seeds.csv", rows.getvalue().encode())
    page = models[best].with_name("report.html")
    if page.is_file():
        atomic_write(folder / page.name, page.read_bytes())
    atomic_write(kept, models[best].read_bytes())
    return kept
