"""A first look at a sample of the pictures, without labels: how large things are, how many, and on what they lie.

What a person cannot know of the network's settings follows from it: the scale at which things come to the size that the
network is made for, how many keypoints a tile needs, and whether there is a background that things lie on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from tusk.config import DataConfig
from tusk.data.dataset import UInt8Array
from tusk.data.flat_field import LEVEL, flatten_background, measure_background
from tusk.data.images import read_picture
from tusk.data.tones import to_full_contrast
from tusk.errors import DataError
from tusk.geometry.blobs import blob_radii, find_blobs, thing_responses
from tusk.geometry.foreground import flat_foreground
from tusk.training.pieces import Pieces, Things, find_pieces, what_are_things

THING = 21.0  # pixels: the diameter of a usual thing, as the network is made for it
TILE = 96  # pixels: the side of a tile, `data.size` of preset folder/fast
_PICTURES = 24  # that are looked at
_ASKED = 6  # before use
_OTHER_SIZE = 2.5  # times: warps in training cover half of that, and pictures differ in what is usual
_SIDE = 640  # longest side at which they are looked at
_LEAST, _MOST = 0.14, 1000  # response of a blob, and how many of them in a picture
_SMALLEST = 2.5  # radius of a blob in pixels
_TINY = 4.0  # radius: smaller usual things are measured again in a part of the picture at its own scale
_LARGEST_SHARE = 0.2  # radius of the largest blob, of the picture's shorter side
# A background that things lie on: even (its noise at full contrast), and neither all nor nothing of a picture.
_EVEN, _COVER = 0.05, (0.001, 0.8)
_SCALES = (0.02, 8.0)
_REMARKS: dict[Things, str] = {
    "blobs": ".",
    "pieces": "; what hangs together is one thing (--losses.blobs.connected).",
    "unclear": ", but round parts of them seldom lie alone, so this may be wrong: look at the circles (tusk preview).",
}
_PART = 0.25  # of a usual thing's diameter: smaller blobs are dust, or parts of things
_SEVERAL = 1.5  # usual things' diameters: pieces that are larger are several that touch
_SPARE, _FEWEST, _MOST_KEYPOINTS = 1.2, 8, 32
_GREY = 4  # bytes by which channels differ at the most in a grey picture


@dataclass(frozen=True, eq=False)
class Glimpse:
    """What was measured in one picture."""

    pixels: UInt8Array  # (h, w, 3), as it was looked at
    scale: float  # of it, to the picture's own pixels
    xy: np.ndarray[Any, np.dtype[np.float64]]  # (N, 2) in the picture's own pixels
    diameter: np.ndarray[Any, np.dtype[np.float64]]  # (N,) in the picture's own pixels
    noise: float  # of the background
    cover: float  # share that is not background
    is_grey: bool
    area: float  # of what was looked at, in the picture's own pixels
    corner: tuple[int, int]  # x, y of its top-left pixel in the picture
    picture_area: float  # of the whole picture, of which that may be a part
    pieces: Pieces  # what hangs together


@dataclass(frozen=True)
class Preview:
    """What a sample of pictures says about all of them."""

    glimpses: tuple[Glimpse, ...]
    thing_size: float  # diameter of a usual thing, in the pictures' own pixels
    smallest: float  # and of the smallest and the largest
    largest: float
    per_picture: float  # things in a usual picture
    fullest: float  # things in the fullest one, for an area of one tile
    has_background: bool
    is_grey: bool
    things: Things = "blobs"

    def sentences(self) -> list[str]:
        """Four lines for people: what was decided, and how to overrule it."""
        colours = "grey" if self.is_grey else "in colour"
        if not self.has_background:
            return [
                f"Looked at {len(self.glimpses)} pictures, {colours}: things fill them, there is no even background.",
                "So all keypoints reconstruct the picture together (preset folder/plain); there will be no masks.",
                f"Keypoints: {self.keypoints} in a picture (--keypoints).",
                "If things do lie on a background, say so with --preset folder/fast.",
            ]
        return [
            f"Looked at {len(self.glimpses)} pictures, {colours}: things lie on a background, about "
            f"{self.per_picture:.0f} in a picture" + _REMARKS[self.things],
            f"A usual thing is {self.thing_size:.0f} pixels wide, from {self.smallest:.0f} to {self.largest:.0f} "
            "(--thing-size).",
            f"Pictures are scaled by {self.scale:g} and cut into tiles (--data.scale, --data.size).",
            f"Keypoints: {self.keypoints} in a tile (--keypoints); one layer, size and mask for each.",
        ]

    @property
    def scale(self) -> float:
        """At which things come to the size that the network is made for."""
        # Three digits: it is read by people, and has to be the same wherever it is computed.
        return float(f"{np.clip(THING / self.thing_size, *_SCALES):.3g}")

    @property
    def keypoints(self) -> int:
        """In a tile, or in a picture where there are none."""
        if self.has_background:
            return int(np.clip(math.ceil(_SPARE * self.fullest), _FEWEST, _MOST_KEYPOINTS))
        return int(np.clip(math.ceil(_SPARE * self.per_picture), _FEWEST, 25))

    def settings(self, sized: bool) -> dict[str, dict[str, Any]]:
        """What follows for the configuration; sized: of a network that learns sizes, in tiles."""
        own: dict[str, dict[str, Any]] = {"model": {"keypoints": self.keypoints}, "data": {"grey": self.is_grey}}
        if sized:
            own["data"]["scale"] = self.scale
            if self.things == "pieces":
                own["losses"] = {"blobs": {"connected": round(_SEVERAL * THING, 1)}}
        return own


def look_at(files: Sequence[Path], thing_size: float | None = None) -> Preview:
    """files: all pictures, of which some are read; thing_size: in pixels, where it is known."""
    count = min(_PICTURES, len(files))
    sample = _spread(files, count)
    glimpses = _glimpses(sample)
    if not glimpses:
        raise DataError(str(files[0].parent if files else "source"), "none of its pictures can be read", "check them")
    usual = _usual_size(glimpses)
    if usual is not None and usual * min(one.scale for one in glimpses) < 2 * _TINY:
        glimpses = _glimpses(sample, whole=False)
        usual = _usual_size(glimpses)
    blobs = [one.diameter for one in glimpses]
    things = what_are_things([one.pieces for one in glimpses], blobs, _PART * (usual or 0))
    if things == "pieces":
        glimpses = [_of_pieces(one) for one in glimpses]
        usual = _usual_size(glimpses)
    noise = float(np.quantile([one.noise for one in glimpses], 0.75))  # most pictures must have an even one
    cover = float(np.median([one.cover for one in glimpses]))
    known = thing_size if thing_size is not None else usual
    sizes = np.concatenate([one.diameter for one in glimpses])
    counts = [int(_counted(one, known).sum()) for one in glimpses] if known else [0]
    in_whole = (
        [number * one.picture_area / one.area for number, one in zip(counts, glimpses, strict=True)] if known else [0]
    )
    tile = (TILE * (known or 1) / THING) ** 2  # in the pictures' own pixels
    density = [number * tile / one.area for number, one in zip(counts, glimpses, strict=True)] if known else [0.0]
    return Preview(
        glimpses=tuple(glimpses),
        thing_size=known or float(min(min(one.pixels.shape[:2]) for one in glimpses)),
        smallest=float(np.quantile(sizes, 0.05)) if len(sizes) else 0.0,
        largest=float(np.quantile(sizes, 0.98)) if len(sizes) else 0.0,
        per_picture=float(np.median(in_whole)),
        fullest=float(np.quantile(density, 0.9)),
        has_background=known is not None and noise <= _EVEN and _COVER[0] <= cover <= _COVER[1],
        is_grey=all(one.is_grey for one in glimpses),
        things=things,
    )


def size_remark(files: Sequence[Path], data: DataConfig) -> str | None:
    """What to say before use on pictures whose things are of quite another size than those trained on."""
    try:
        seen = look_at(_spread(files, min(_ASKED, len(files))))
    except DataError:
        return None
    times = seen.thing_size * data.scale / THING
    if not seen.has_background or 1 / _OTHER_SIZE < times < _OTHER_SIZE:
        return None
    how, wrong = (f"{times:.1f} times as large as", "a thing may get several points, or none")
    if times < 1:
        how, wrong = f"{1 / times:.1f} times smaller than", "several things may get one point, or none"
    return (
        f"A usual thing here looks {how} those that the model is made for ({seen.thing_size:.0f} pixels instead of "
        f"{THING / data.scale:.0f}): {wrong}. Train on these pictures, or scale them by {1 / times:.2g} first."
    )


def _spread(files: Sequence[Path], count: int) -> list[Path]:
    return [files[place * len(files) // count] for place in range(count)]


def _glimpses(files: Sequence[Path], *, whole: bool = True) -> list[Glimpse]:
    """Of those that can be read."""
    glimpses = []
    for file in files:
        try:
            glimpses.append(_measure(read_picture(file).pixels, whole=whole))
        except DataError:
            continue  # it will be skipped, and named, when all of them are read
    return glimpses


def _counted(glimpse: Glimpse, usual: float | None) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(N,) bool: the blobs that are things or may be: much smaller ones are dust, or parts of things."""
    return np.asarray(glimpse.diameter >= _PART * (usual or 0))


def _of_pieces(glimpse: Glimpse) -> Glimpse:
    """With pieces in place of blobs."""
    whole = ~glimpse.pieces.cut
    return replace(glimpse, xy=glimpse.pieces.xy[whole] + glimpse.corner, diameter=glimpse.pieces.diameter[whole])


def _usual_size(glimpses: Sequence[Glimpse]) -> float | None:
    """The diameter below which half of the width of all things together lies: dust is many, but small."""
    sizes = np.sort(np.concatenate([one.diameter for one in glimpses]))
    if not len(sizes):
        return None
    shares = np.cumsum(sizes)
    return float(sizes[np.searchsorted(shares, shares[-1] / 2)])


@torch.no_grad()
def _measure(pixels: UInt8Array, *, whole: bool = True) -> Glimpse:
    """pixels (H, W, 3): all of it, at a longest side of 640, or the middle of it at its own scale."""
    height, width = pixels.shape[:2]
    scale = min(1.0, _SIDE / max(height, width))
    if whole:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        shown = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)) if scale < 1 else pixels
        left = top = 0
    else:
        scale, left, top = 1.0, max(0, (width - _SIDE) // 2), max(0, (height - _SIDE) // 2)
        shown = pixels[top : top + _SIDE, left : left + _SIDE]
    flat = torch.from_numpy(flatten_background(shown)).permute(2, 0, 1)[None].float() / 255
    foreground = flat_foreground(flat, LEVEL)
    radii = blob_radii(_SMALLEST, max(2 * _SMALLEST, _LARGEST_SHARE * min(shown.shape[:2])))
    xy, radius, response = find_blobs(thing_responses(foreground, radii), radii, _LEAST, _MOST)
    found = response[0] > 0
    field = measure_background(to_full_contrast(shown))
    return Glimpse(
        pixels=shown,
        scale=scale,
        xy=((xy[0, found].double() + 0.5) / scale - 0.5).numpy() + np.array([left, top]),
        diameter=(2 * radius[0, found].double() / scale).numpy(),
        noise=field.noise,
        cover=field.cover,
        is_grey=bool((np.ptp(shown.astype(np.int16), axis=2) <= _GREY).mean() > 0.99),
        area=shown.shape[0] * shown.shape[1] / scale**2,
        corner=(left, top),
        picture_area=float(height * width),
        pieces=find_pieces((foreground[0, 0] > 0.5).numpy(), xy[0, found].double().numpy(), scale),
    )
