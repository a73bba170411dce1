"""Makes docs/found.png: what the models of the package find in one test image each.

    python docs/found.py CLEVR        # CLEVR: a folder of scenes (docs/data.md); MNIST by 'tusk data get mnist'

Columns: the image, points and types, scores (or masks where there are layers), the image painted again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import tusk
from tusk.data.registry import Request, open_dataset
from tusk.detection.draw import draw_points, type_colours
from tusk.detection.gain import gains
from tusk.detection.merge import merge_fragments
from tusk.detection.relocate import detect_keypoints
from tusk.model.layers import keep_layers, label_map
from tusk.report.draw import draw_score, to_bytes

SIDE, GAP = 264, 8
BEHIND = (28, 30, 34)


@torch.no_grad()
def row(
    model: str, dataset: str, source: str | None, index: int, keypoints: int, least_gain: float
) -> list[Image.Image]:
    stored = tusk.load(model)
    network, types = stored.network, stored.config.model.types
    data = stored.config.data
    split, count = ("clevr10", None) if source else ("test", index + 1)
    images = open_dataset(dataset, Request(source=source, split=split, size=data.size, count=count, fit=data.fit))
    pixels = np.array(images.image(index))
    image = torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255
    output = detect_keypoints(network, image, keypoints)
    output = merge_fragments(network, image, keep_layers(output, gains(network, image, output) >= least_gain))
    shown = output.found[0].numpy()
    times = max(1, 80 // data.size)  # so that dots and numbers are of one size in all rows
    xy = (output.xy[0].numpy()[shown] + 0.5) * times - 0.5
    points = draw_points(pixels.repeat(times, 0).repeat(times, 1), xy, output.label[0].numpy()[shown], types)
    if output.layer_alpha is None:
        middle = draw_score(output.score_map[0, 0].numpy())
    else:
        colours = type_colours(types)
        middle = np.array([BEHIND, *(colours[kind] for kind in output.label[0])], np.uint8)[label_map(output)[0]]
    smooth = Image.Resampling.BICUBIC if output.layer_alpha is None else Image.Resampling.NEAREST
    return [
        Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.NEAREST),
        points.resize((SIDE, SIDE), Image.Resampling.LANCZOS),
        Image.fromarray(middle).resize((SIDE, SIDE), smooth),
        Image.fromarray(to_bytes(output.reconstruction[0].numpy())).resize((SIDE, SIDE), Image.Resampling.NEAREST),
    ]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("clevr", help="a folder of CLEVR scenes with splits")
    flags.add_argument("--scene", type=int, default=0, help="which of CLEVR10's")
    clevr = flags.parse_args()
    rows = [
        row("mnist-hard", "mnist-hard", None, 4, 9, -np.inf),
        row("tetrominoes", "tetrominoes", None, 4, 3, 0.5),
        row("clevr6", "clevr10", clevr.clevr, clevr.scene, 10, 0.64),
    ]
    sheet = Image.new("RGB", (4 * SIDE + 3 * GAP, len(rows) * (SIDE + GAP) - GAP), (255, 255, 255))
    for number, pictures in enumerate(rows):
        for place, picture in enumerate(pictures):
            sheet.paste(picture, (place * (SIDE + GAP), number * (SIDE + GAP)))
    sheet.save(Path(__file__).with_name("found.png"), optimize=True)


if __name__ == "__main__":
    main()
