"""Are the blobs of a picture things, or parts of things? What recurs alone is a thing.

A cell in a clump is a thing because other cells of its kind lie alone. The arms of a cross or the loops of a digit
never do: there it is what hangs together that recurs, and each connected piece is a thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from tusk.geometry.components import find_components

# Shares, in tests far from these: of whole pieces with one blob that is most of it, 0 to 0.2 (digits, blocks, people)
# and 0.6 to 0.9 (nuclei, blood cells, solids); of what is in whole pieces, 0.1 to 0.3 (faces) and 0.7 to 1.
_ALONE, _WHOLE = 0.3, 0.5
_FEWEST = 10  # whole pieces in all pictures, to judge by
_MOST = 0.5  # of a piece's disc is its largest blob, at least
_PIECES = 1000  # in a picture

Things = Literal["blobs", "pieces", "unclear"]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Connected pieces of one picture, holes filled, in the picture's own pixels."""

    xy: FloatArray  # (N, 2)
    diameter: FloatArray  # (N,)
    area: FloatArray  # (N,)
    cut: np.ndarray[Any, np.dtype[np.bool_]]  # (N,): the edge cuts it off
    of_blob: np.ndarray[Any, np.dtype[np.int64]]  # the piece that each blob lies in, -1 for none


def find_pieces(foreground: np.ndarray[Any, np.dtype[np.bool_]], blobs: FloatArray, scale: float) -> Pieces:
    """foreground (h, w) at that scale, blobs (N, 2) in its pixels."""
    from scipy import ndimage  # takes long to load, and is needed for a first look only

    filled = np.asarray(ndimage.binary_fill_holes(foreground))
    found = find_components(torch.from_numpy(filled)[None], _PIECES)
    number = int(found.found.sum())
    label = found.label[0].numpy()
    height, width = label.shape
    column, row = np.rint(blobs).astype(np.int64).clip(0, (width - 1, height - 1)).T
    within = label[row, column]
    return Pieces(
        xy=(found.xy[0, :number].double().numpy() + 0.5) / scale - 0.5,
        diameter=2 * found.radius[0, :number].double().numpy() / scale,
        area=np.bincount(label.ravel(), minlength=number)[:number] / scale**2,
        cut=found.cut[0, :number].numpy(),
        of_blob=np.where(within < number, within, -1),
    )


def what_are_things(pieces: list[Pieces], blobs: list[FloatArray], least: float) -> Things:
    """Blobs, or pieces, of which blobs are parts; unclear where blobs never lie alone, and pieces are seldom whole.

    blobs: their diameters (N,) in each picture, of which those below `least` do not count.
    """
    alone, whole, everything = [], 0.0, 0.0
    for one, diameter in zip(pieces, blobs, strict=True):
        number = len(one.diameter)
        mine = (one.of_blob >= 0) & (diameter >= least)
        count = np.bincount(one.of_blob[mine], minlength=number)
        largest = np.zeros(number)
        np.maximum.at(largest, one.of_blob[mine], diameter[mine])
        clear = ~one.cut & (one.diameter >= least)
        alone.extend((count == 1)[clear] & (largest**2 >= _MOST * one.diameter**2)[clear])
        whole += float(one.area[clear].sum())
        everything += float(one.area.sum())
    if len(alone) < _FEWEST or float(np.mean(alone)) >= _ALONE:
        return "blobs"
    return "pieces" if whole >= _WHOLE * everything else "unclear"
