"""What ten names and ten merges are worth: a model with twice as many types as there are kinds, named by its crops.

    python benchmarks/naming.py --data mnist-hard

The shipped mnist-hard model gets 20 types: the k-means clusters of its own descriptors, on images that are not scored.
Then somebody looks at the typical crops of each type, as `tusk serve` shows them: the first type of each digit gets the
digit's name, all others are merged into it. Last the paper's measure, on other images. Nothing is trained.

    python benchmarks/naming.py --blood-cells BCCD --model runs/blood

The other way: types follow five clicks on each kind of blood cell (`clicks.py`), for many draws of clicks. `--keep`
stores what was found, so that another run need not look at the pictures again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import tusk
from clicks import Points, ceiling, draws, find_points
from tusk.api.model import Model
from tusk.data.dataset import Dataset
from tusk.model.storage import StoredModel, load_model, save_model
from tusk.naming import NamesFile, named_types, names_path
from tusk.naming.edits import Merge, Rename
from tusk.weights import shipped_models

_CROPS = 12  # that the page shows of a type
_NEAR = 6.0  # pixels: a point on a digit


def descriptors_of(model: Model, images: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """-> (N, C), and the digit that each point lies on (-1 for none)."""
    vectors, digits = [], []
    for index in range(len(images)):
        found, truth = model.detect(images.image(index)), images.truth(index)
        assert truth is not None and truth.points is not None and truth.classes is not None
        away = np.hypot(*np.moveaxis(found.xy[:, None] - truth.points[None], -1, 0))  # (n, digits)
        vectors.append(found.descriptor)
        digits.append(np.where(away.min(1) < _NEAR, truth.classes[away.argmin(1)], -1))
    return np.concatenate(vectors), np.concatenate(digits)


def with_types(model: StoredModel, centres: np.ndarray) -> StoredModel:
    """The same network with these prototypes."""
    config = model.config.model_copy(update={"model": model.config.model.model_copy(update={"types": len(centres)})})
    network = type(model.network)(config.model)
    state = model.network.state_dict()
    state["prototypes.weight"] = torch.from_numpy(centres).float()
    network.load_state_dict(state)
    return StoredModel(network.eval(), config, model.provenance)


def name_types(names: NamesFile, types: np.ndarray, vectors: np.ndarray, digits: np.ndarray) -> tuple[int, int]:
    """-> how many names were given, and how many merges were made."""
    named: dict[str, int] = {}
    merges = 0
    for number in range(int(types.max()) + 1):
        own = np.flatnonzero(types == number)
        if not len(own):
            continue
        typical = own[np.argsort(-vectors[own] @ vectors[own].mean(0))][:_CROPS]
        [(digit, _)] = Counter(digits[typical].tolist()).most_common(1)
        name = f"digit {digit}" if digit >= 0 else "nothing"
        if name in named:
            names.edit(lambda _, into=named[name], other=number: Merge(into=into, other=other))
            merges += 1
        else:
            names.edit(lambda _, kind=number, name=name: Rename(type=kind, name=name))
            named[name] = number
    return len(named), merges


def blood_cells(chosen: argparse.Namespace) -> None:
    """Prints the figures of many draws of clicks."""
    model = tusk.load(chosen.model)
    if chosen.keep is not None and chosen.keep.exists():
        points = Points.load(chosen.keep)
    else:
        points = find_points(model, chosen.blood_cells, chosen.every)
        if chosen.keep is not None:
            points.save(chosen.keep)
    print(
        f"{len(points.types):,} points, {np.sum(points.classes >= 0):,} of them in a box; balanced accuracy of types, %"
    )
    print(f"a classifier that learns all labels of half of the pictures: {ceiling(points):.1f}")
    words = {
        "by_labels": "types alone, named by all labels",
        "by_clicks": "types alone, named by the clicks",
        "unsorted": "refitted, the rest named by all labels",
        "refitted": "refitted and sorted by the clicks",
    }
    for seed in range(3):
        every = list(draws(points, model.config.model.types, chosen.clicks, chosen.draws, seed))
        print(f"seed {seed}, {len(every)} draws of {chosen.clicks} clicks on each of {', '.join(points.names)}")
        values = {name: np.array([getattr(one, name) for one in every]) for name in words}
        for name, title in words.items():
            print(f"  {title}: {values[name].mean():.1f}, std {values[name].std():.1f}, least {values[name].min():.1f}")
        for name in ("by_labels", "by_clicks"):
            gained = values["refitted"] - values[name]
            often = f"at least 5 in {(gained >= 5).sum()}"
            print(f"  refitted and sorted, against {words[name]}: {gained.mean():+.1f}, {often}")


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--data", choices=("mnist-hard", "digits"), default="mnist-hard")
    flags.add_argument("--source", help="the folder of MNIST")
    flags.add_argument("--types", type=int, default=20)
    flags.add_argument("--images", type=int, default=400, help="that the types are made of and named by")
    flags.add_argument("--count", type=int, default=2000, help="that are scored")
    flags.add_argument("--blood-cells", type=Path, help="the collection BCCD: clicks on its cells instead")
    flags.add_argument("--model", default="blood-cells", help="for --blood-cells: a run or a model file")
    flags.add_argument("--clicks", type=int, default=5, help="on each kind")
    flags.add_argument("--draws", type=int, default=20, help="of clicks, for each of three seeds")
    flags.add_argument("--every", type=int, default=1, help="only each so many-th picture of the blood cells")
    flags.add_argument("--keep", type=Path, help="a file .npz for what was found in the blood cells")
    chosen = flags.parse_args()
    if chosen.blood_cells is not None:
        blood_cells(chosen)
        return
    shipped = load_model(shipped_models()["mnist-hard"])
    images = tusk.datasets.open(chosen.data, chosen.source, split="train", count=chosen.images)
    vectors, digits = descriptors_of(Model(shipped), images)
    with threadpool_limits(1):
        clusters = KMeans(chosen.types, n_init=4, random_state=0).fit(vectors)
    centres = clusters.cluster_centers_ / np.linalg.norm(clusters.cluster_centers_, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.safetensors"
        save_model(path, with_types(shipped, centres))
        names = NamesFile(names_path(path), load_model(path))
        given, merges = name_types(names, (vectors @ centres.T).argmax(1), vectors, digits)
        left = len(named_types(names.naming()).visible)
        figures = tusk.load(path).evaluate(chosen.data, chosen.source, chosen.count, progress=False)
    before = Model(shipped).evaluate(chosen.data, chosen.source, chosen.count, progress=False)
    print(f"{chosen.types} types, {given} names and {merges} merges: {left} types are left")
    for title, result in ((f"{chosen.types} types, named", figures), ("as it comes, 10 types", before)):
        values = {name: figure["value"] for name, figure in result.to_dict()["figures"].items()}
        print(f"{title}: both {values['both']:.1f}%, localisation {values['localisation']:.1f}%, {chosen.data}")


if __name__ == "__main__":
    main()
