"""Makes one picture of docs/gallery.md: above what a model was shown, below what it found, side by side.

python docs/gallery.py digits RUN --data digits                 # four images of a dataset that tusk makes or reads
python docs/gallery.py blood-cells blood-cells PICTURE...       # pictures of your own
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import tusk
from tusk.data.images import read_picture
from tusk.data.registry import Request, open_dataset

HEIGHT, GAP, WHITE = 240, 6, (255, 255, 255)
COUNT = 4  # images of a dataset; the first four of its test split, none chosen
QUALITY = 88


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("name", help="of the picture: docs/gallery/NAME.jpg")
    flags.add_argument("model", help="one that comes with tusk, a file, or a run's folder")
    flags.add_argument("pictures", nargs="*", type=Path)
    flags.add_argument("--data", help="a dataset, instead of pictures")
    flags.add_argument("--source", help="of the dataset")
    flags.add_argument("--split", default="test")
    flags.add_argument("--keypoints", type=int)
    flags.add_argument("--height", type=int, default=HEIGHT, help="of each picture in the strip")
    chosen = flags.parse_args()
    model = tusk.load(chosen.model)
    if chosen.data is None:
        shown = [read_picture(picture).pixels for picture in chosen.pictures]
    else:
        data = model.config.data
        request = Request(source=chosen.source, split=chosen.split, size=data.size, count=COUNT, fit=data.fit)
        images = open_dataset(chosen.data, request)
        shown = [np.array(images.image(number)) for number in range(COUNT)]
    strip = pair_strip(model, shown, chosen.height, chosen.keypoints)
    path = Path(__file__).parent / "gallery" / f"{chosen.name}.jpg"
    path.parent.mkdir(exist_ok=True)
    strip.save(path, quality=QUALITY, optimize=True)
    print(path)


def pair_strip(model: tusk.Model, shown: list[np.ndarray], height: int, keypoints: int | None = None) -> Image.Image:
    """The pictures in a row, and below each the same with what was found in it."""
    found = [one.plot(pixels) for one, pixels in zip(model.detect(shown, keypoints), shown, strict=True)]
    columns = []
    for pixels, drawn in zip(shown, found, strict=True):
        size = (max(1, round(height * drawn.width / drawn.height)), height)
        enlarged = Image.Resampling.NEAREST if pixels.shape[0] < height else Image.Resampling.LANCZOS
        columns.append((Image.fromarray(pixels).resize(size, enlarged), drawn.resize(size, Image.Resampling.LANCZOS)))
    width = sum(above.width + GAP for above, _ in columns) - GAP
    strip = Image.new("RGB", (width, 2 * height + GAP), WHITE)
    left = 0
    for above, below in columns:
        strip.paste(above, (left, 0))
        strip.paste(below, (left, height + GAP))
        left += above.width + GAP
    return strip


if __name__ == "__main__":
    main()
