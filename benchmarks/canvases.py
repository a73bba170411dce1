"""How many canvases of nine digits are made in a second on one core.

    python benchmarks/canvases.py            # from scikit-learn's digits
    python benchmarks/canvases.py MNIST_DIR  # from MNIST's idx files

Baseline, in the same run: a plain loop over canvases, darts and digits. All ways must give the same bytes.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tusk.data.dataset import UInt8Array
from tusk.data.datasets.digits import Digits
from tusk.data.datasets.mnist import MnistHard
from tusk.data.synthetic.canvases import BOX, CANVAS, DARTS, DIGITS, DISTANCE, PATCH, RIM, DigitCanvases

BATCH = 40
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mnist", type=Path, nargs="?", help="folder with MNIST's idx files")
    parser.add_argument("--count", type=int, default=2_000, help="canvases per measurement")
    arguments = parser.parse_args()
    dataset: DigitCanvases = MnistHard(arguments.mnist, split="train") if arguments.mnist else Digits(split="train")
    count = min(arguments.count, len(dataset)) // BATCH * BATCH
    shuffled = np.random.default_rng(0).permutation(len(dataset))[:count]
    batches = np.split(shuffled, count // BATCH)

    few = shuffled[: count // 10].tolist()
    plain = np.stack([plain_canvas(dataset, index) for index in few])
    same = np.array_equal(plain, dataset.images(few)) and all(
        np.array_equal(canvas, dataset.image(index)) for canvas, index in zip(plain, few, strict=True)
    )
    verdict = "equal" if same else "DIFFERENT"
    print(f"{dataset.name}: {len(few)} canvases of the plain loop, image() and images(): {verdict}")

    baseline = rate(lambda: [plain_canvas(dataset, index) for index in few], len(few))
    print(f"{'plain loop':<28}{baseline:9,.0f} canvases/s")
    report("image(), in order", rate(lambda: [dataset.image(index) for index in range(count)], count), baseline)
    report("image(), at random", rate(lambda: [dataset.image(index) for index in shuffled], count), baseline)
    report(f"images(), {BATCH} at random", rate(lambda: [dataset.images(batch) for batch in batches], count), baseline)
    report("truth(), in order", rate(lambda: [dataset.truth(index) for index in range(count)], count), baseline)
    if not same:
        raise SystemExit(1)


def report(what: str, canvases_per_second: float, baseline: float) -> None:
    print(f"{what:<28}{canvases_per_second:9,.0f} canvases/s  {canvases_per_second / baseline:5.2f} x plain loop")


def rate(work: Callable[[], object], count: int) -> float:
    """The best of several runs: the others were disturbed."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return count / min(seconds)


def plain_canvas(dataset: DigitCanvases, index: int) -> UInt8Array:
    """One canvas, one digit and one dart at a time."""
    numbers = words(dataset.seed, ("train", "test").index(dataset.split), index)
    total = len(dataset.bank.labels)
    samples: list[int] = []
    for last in range(total - DIGITS, total):
        sample = (next(numbers) >> 32) * (last + 1) >> 32
        samples.append(last if sample in samples else sample)
    places: list[tuple[int, int]] = []
    while len(places) < DIGITS:
        places = throw(dataset, samples, [next(numbers) for _ in range(DARTS)])
    canvas = np.zeros((CANVAS, CANVAS), dtype=np.uint8)
    for sample, (x, y) in zip(samples, places, strict=True):
        patch = dataset.bank.patches[sample]
        left, top, right, bottom = max(x, 0), max(y, 0), min(x + PATCH, CANVAS), min(y + PATCH, CANVAS)
        old = canvas[top:bottom, left:right]
        canvas[top:bottom, left:right] = np.maximum(old, patch[top - y : bottom - y, left - x : right - x])
    return np.repeat(canvas[:, :, None], 3, axis=2)


def throw(dataset: DigitCanvases, samples: list[int], numbers: list[int]) -> list[tuple[int, int]]:
    """The places of the digits, in order, as far as there is a dart for each."""
    side = CANVAS - BOX + 1
    darts = [(((word & 0xFFFF_FFFF) * side >> 32) - RIM, ((word >> 32) * side >> 32) - RIM) for word in numbers]
    places: list[tuple[int, int]] = []
    for left, top, right, bottom in dataset.bank.room[samples].tolist():
        for x, y in darts:
            near = any((x - a) ** 2 + (y - b) ** 2 < DISTANCE**2 for a, b in places)
            if left <= x <= right and top <= y <= bottom and not near:
                places.append((x, y))
                break
        else:
            return places
    return places


def words(seed: int, split: int, index: int) -> Iterator[int]:
    bits = np.random.PCG64(np.random.SeedSequence((seed, split, index)))
    while True:
        yield from bits.random_raw(DARTS).tolist()


if __name__ == "__main__":
    main()
