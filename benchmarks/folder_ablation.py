"""What each ingredient of the recipe for folders is worth: each left out once, on two collections with other labels.

    python benchmarks/folder_ablation.py --nuclei NUCLEI --blood-cells BCCD --steps 600 --out runs/ablation

A row is one training; a row that is there already is not trained again, so the command may be stopped and given again.
Rows "in use" need no training: they are detections of the first row's model with other settings. Labels are read for
the figures only (benchmarks/nuclei.py, benchmarks/blood_cells.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import blood_cells
import nuclei
import tusk

AS_IT_IS = "as it is"
TRAINED: dict[str, dict[str, Any]] = {
    AS_IT_IS: {},
    "no blobs": {"losses": {"blobs": {"weight": 0.0}}},
    "no reconstruction": {"losses": {"reconstruction": {"weight": 0.0}}},
    "no opacity": {"losses": {"opacity": {"weight": 0.0, "binarity": 0.0}}},
    "no InfoNCE": {"losses": {"info_nce": {"weight": 0.0}}},
    "no nearest neighbours in InfoNCE": {"losses": {"info_nce": {"neighbours": 0.0}}},
    "no feature equivariance": {"losses": {"feature_equivariance": {"weight": 0.0}}},
    "no k-means loss": {"losses": {"kmeans": {"weight": 0.0}}},
    "clustered once": {"training": {"prototype_restarts": []}},
    "full contrast instead of flat field": {"data": {"contrast": "full"}},
}
IN_USE: dict[str, dict[str, Any]] = {
    "in use: no explaining away": {"min_explained": 0.0},
    "in use: no soft suppression": {"suppression": None},
    "in use: one view": {"views": 1},
}


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--nuclei", type=Path)
    flags.add_argument("--blood-cells", type=Path)
    flags.add_argument("--steps", type=int, default=600)
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--every", type=int, default=1, help="measure on only each so many-th picture")
    flags.add_argument("--rows", nargs="*", default=[*TRAINED, *IN_USE])
    flags.add_argument("--out", type=Path, default=Path("runs/ablation"))
    chosen = flags.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.nuclei is not None:
        apart = set(nuclei.held_out(chosen.nuclei))
        pictures = [str(one) for one in sorted((chosen.nuclei / "images").absolute().iterdir()) if one not in apart]
        ablate("nuclei", pictures, partial(nuclei.measure, nuclei=chosen.nuclei, every=chosen.every), chosen)
    if chosen.blood_cells is not None:
        source = [str(chosen.blood_cells / "images")]
        ablate("blood", source, partial(blood_cells.measure, bccd=chosen.blood_cells, every=chosen.every), chosen)


def ablate(name: str, source: list[str], measure: Callable[..., object], chosen: argparse.Namespace) -> None:
    """Print a line for each row."""
    for row in chosen.rows:
        if row in TRAINED:
            print(f"{name}, {row}: {measure(trained(name, row, source, chosen))}", flush=True)
        else:
            model = trained(name, AS_IT_IS, source, chosen)
            print(f"{name}, {row}: {measure(model, **IN_USE[row])}", flush=True)


def trained(name: str, row: str, source: list[str], chosen: argparse.Namespace) -> tusk.Model:
    folder = chosen.out / f"{name}-{row.replace(' ', '-')}"
    if (folder / "model.safetensors").is_file():
        return tusk.load(folder)
    if folder.is_dir():
        return tusk.train(resume=folder, progress=False)
    settings = {part: dict(own) for part, own in TRAINED[row].items()}
    settings["training"] = {**settings.get("training", {}), "steps": chosen.steps}
    return tusk.train(source, seed=chosen.seed, out=folder, progress=False, **settings)


if __name__ == "__main__":
    main()
