"""How well the unsupervised score tracks accuracy: over finished runs on data whose truth is known.

    tusk train digits --seeds 8 --training.steps 200 --out runs/selection
    python benchmarks/selection.py runs/selection/seed-* --out docs/selection.png

Reads the last row of each run's results.csv, prints the pairs and their rank correlation, and draws them. The labels
decide nothing: they are read after the runs are over.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from matplotlib.figure import Figure
from scipy.stats import spearmanr


def last_row(run: Path) -> dict[str, str]:
    with (run / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or "both" not in rows[-1]:
        sys.exit(f"{run}: its results.csv holds no validation with the task's figures")
    return rows[-1]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("runs", nargs="+", type=Path)
    flags.add_argument("--out", type=Path, required=True, help="the picture to write")
    chosen = flags.parse_args()
    points = []
    for run in chosen.runs:
        row = last_row(run)
        points.append((float(row["score"]), 100 * float(row["both"])))
        print(f"{run.name}: score {points[-1][0]:.3f}, both {points[-1][1]:.1f}")
    score, both = zip(*points, strict=True)
    rank = spearmanr(score, both).statistic
    print(f"{len(points)} runs, rank correlation {rank:.2f}, the best by score has both {max(points)[1]:.1f}")

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(score, both, color="#3465a4")
    axes.set_xlabel("score: agreement of two views x explained variance (no labels)")
    axes.set_ylabel("found and of the right type, %")
    axes.set_title(f"{len(points)} runs, rank correlation {rank:.2f}", fontsize=10)
    axes.grid(alpha=0.3)
    figure.savefig(chosen.out, dpi=110)


if __name__ == "__main__":
    main()
