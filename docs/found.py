"""Makes docs/found.png: what the models of the package detect in one test image each.

    python docs/found.py CLEVR        # CLEVR: a folder of scenes (docs/data.md); MNIST by 'tusk data get mnist'

Columns: the image, keypoints and types, the score map (or masks where there are layers), the reconstruction.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import tusk
from tusk.data.registry import Request, open_dataset
from tusk.detection.draw import draw_points, type_colours
from tusk.detection.pipeline import detect_batch
from tusk.detection.settings import settings_from
from tusk.report.draw import draw_score, to_bytes

SIDE, GAP = 264, 8
BEHIND = (28, 30, 34)


def row(name: str, dataset: str, source: str | None, index: int, keypoints: int, min_gain: float) -> list[Image.Image]:
    model = tusk.load(name)
    data, types = model.config.data, model.config.model.types
    split, count = ("clevr10", None) if source else ("test", index + 1)
    images = open_dataset(dataset, Request(source=source, split=split, size=data.size, count=count, fit=data.fit))
    pixels = np.array(images.image(index))
    image = torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255
    found = detect_batch(model.network, image, replace(settings_from(model.config, min_gain), keypoints=keypoints))
    kept, label = found.kept[0].numpy(), found.type[0].numpy()
    times = max(1, 80 // data.size)  # so that dots and numbers are of one size in all rows
    xy = (found.xy[0].numpy()[kept] + 0.5) * times - 0.5
    points = draw_points(pixels.repeat(times, 0).repeat(times, 1), xy, label[kept], types)
    masks = found.labels()
    if masks is None:
        middle, smooth = draw_score(found.score_map[0, 0].numpy()), Image.Resampling.BICUBIC
    else:
        colours = type_colours(types)
        middle = np.array([BEHIND, *(colours[kind] for kind in label)], np.uint8)[masks[0].numpy()]
        smooth = Image.Resampling.NEAREST
    return [
        Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.NEAREST),
        points.resize((SIDE, SIDE), Image.Resampling.LANCZOS),
        Image.fromarray(middle).resize((SIDE, SIDE), smooth),
        Image.fromarray(to_bytes(found.reconstruction[0].numpy())).resize((SIDE, SIDE), Image.Resampling.NEAREST),
    ]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("clevr", help="a folder of CLEVR scenes with splits")
    flags.add_argument("--scene", type=int, default=0, help="which of CLEVR10's")
    chosen = flags.parse_args()
    rows = [
        row("mnist-hard", "mnist-hard", None, 4, 9, -math.inf),
        row("tetrominoes", "tetrominoes", None, 4, 3, 0.5),
        row("clevr6", "clevr10", chosen.clevr, chosen.scene, 10, 0.64),
    ]
    sheet = Image.new("RGB", (4 * SIDE + 3 * GAP, len(rows) * (SIDE + GAP) - GAP), (255, 255, 255))
    for number, pictures in enumerate(rows):
        for place, picture in enumerate(pictures):
            sheet.paste(picture, (place * (SIDE + GAP), number * (SIDE + GAP)))
    sheet.save(Path(__file__).with_name("found.png"), optimize=True)


if __name__ == "__main__":
    main()
