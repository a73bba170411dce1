"""How fast people are made, and what the bounding boxes and the z-buffer save.

Baseline: every ray against every shape, the nearest kept; the same pixels come out. Run: python benchmarks/people.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tusk.data.datasets.people import People, Person
from tusk.data.synthetic.people.render import Rendering, depths, render, shade

SAMPLES = 3


def render_all_against_all(person: Person) -> Rendering:
    size, camera = person.camera.size, person.camera
    pixels = (np.arange(size * SAMPLES) + 0.5) / SAMPLES - 0.5
    u, v = (pixels - camera.centre_x) / camera.focal, (pixels - camera.centre_y) / camera.focal
    nearest = np.full((len(v), len(u)), np.inf)
    owner = np.full((len(v), len(u)), -1, dtype=np.int16)
    for number, shape in enumerate(person.shapes):
        found = depths(shape, u[None, :], v[:, None])
        owner[found < nearest] = number
        nearest = np.minimum(nearest, found)
    return shade(person.shapes, person.light, nearest, owner, u, v, SAMPLES)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--images", type=int, default=120, help="how many to make; a tenth for the baseline")
    count = flags.parse_args().images
    baseline_count = max(1, count // 10)
    people = People(count=count)
    people.image(0)  # what numpy sets up at first use is not counted
    start = time.perf_counter()
    for index in range(count):
        people.image(index)
    whole = (time.perf_counter() - start) / count

    drawn = [people.person(index) for index in range(baseline_count)]
    fast, slow = 0.0, 0.0
    for person in drawn:  # in turn, so that a busy machine slows both alike
        start = time.perf_counter()
        quick = render(person.shapes, person.camera, person.light, SAMPLES)
        middle = time.perf_counter()
        plain = render_all_against_all(person)
        slow += time.perf_counter() - middle
        fast += middle - start
        if not (np.array_equal(quick.image, plain.image) and np.array_equal(quick.mask, plain.mask)):
            raise SystemExit("the two renderers differ")
    print(
        f"people, 112 px, one process: {1 / whole:.0f} images/s ({1000 * whole:.1f} ms each, pose and joints included)"
    )
    print(f"rendering alone:             {1000 * fast / baseline_count:.1f} ms")
    print(f"all rays, all shapes:        {1000 * slow / baseline_count:.1f} ms, the same pixels")
    print(f"ratio:                       {slow / fast:.1f} times faster than the baseline")


if __name__ == "__main__":
    main()
