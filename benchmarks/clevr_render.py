"""How fast CLEVR-like scenes are made, and what it helps to test rays only against things that they come near.

Run on one core:  OMP_NUM_THREADS=1 python benchmarks/clevr_render.py [--images 30] [--size 128]
The baseline is the same ray tracer without bounding balls (every ray against every thing), in the same run on the same
scenes; the bytes of both must be equal. Times are CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from tusk.data.datasets.clevr_made import ClevrMade
from tusk.data.synthetic.clevr.render import draw


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=30)
    parser.add_argument("--size", type=int, default=128)
    chosen = parser.parse_args()
    equal = True
    for fewest, most in ((3, 6), (7, 10)):
        dataset = ClevrMade(count=chosen.images, size=chosen.size, min_objects=fewest, max_objects=most)
        dataset.image(0)  # first use pays for imports and memory
        start = time.process_time()
        scenes = [dataset.scene(index) for index in range(chosen.images)]
        sampling = time.process_time() - start
        # Taken in turn, so that a busy machine slows both alike.
        fast, naive = 0.0, 0.0
        for scene in scenes:
            start = time.process_time()
            image = draw(scene, chosen.size)
            middle = time.process_time()
            reference = draw(scene, chosen.size, cull=False)
            fast, naive = fast + middle - start, naive + time.process_time() - middle
            equal &= bool(np.array_equal(image, reference))
        rate = chosen.images / (sampling + fast)
        print(
            f"{fewest}-{most} objects, {chosen.size} px: {rate:.1f} images/s/core "
            f"({1e3 * sampling / chosen.images:.1f} ms scene, {1e3 * fast / chosen.images:.1f} ms drawing); "
            f"every ray against every thing: {1e3 * naive / chosen.images:.1f} ms, {naive / fast:.1f} times as long"
        )
    print("same bytes" if equal else "BYTES DIFFER")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
