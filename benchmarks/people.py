"""How fast people are made, and what the bounding boxes and the z-buffer save.

Baseline: every ray against every shape, the nearest kept; the same pixels come out. Run: python benchmarks/people.py
"""

from __future__ import annotations

import time

import numpy as np

from tusk.data.datasets.people import People, Person
from tusk.data.synthetic.people.render import Rendering, depths, render, shade

COUNT, BASELINE_COUNT, SAMPLES = 120, 12, 3


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
    people = People(count=COUNT)
    people.image(0)  # what numpy sets up at first use is not counted
    start = time.perf_counter()
    for index in range(COUNT):
        people.image(index)
    whole = (time.perf_counter() - start) / COUNT

    drawn = [people.person(index) for index in range(BASELINE_COUNT)]
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
    print(f"rendering alone:             {1000 * fast / BASELINE_COUNT:.1f} ms")
    print(f"all rays, all shapes:        {1000 * slow / BASELINE_COUNT:.1f} ms, the same pixels")
    print(f"ratio:                       {slow / fast:.1f} times faster than the baseline")


if __name__ == "__main__":
    main()
