"""How large the dots and numbers in a picture are, and where the numbers go: beside their dots, never over the edge.

Everything is in pixels of the drawing, whatever it is drawn with: overlays are pixels, a page's pictures are shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

FloatArray = npt.NDArray[np.float64]

_SCREEN = 1600.0  # pixels across, of a screen on which a large picture is looked at as a whole
_LEAST, _USUAL = 12.0, 0.03  # height of a number on that screen; as a share of the picture's side, if there is room
_ROOM = 0.3  # of the way to the next dot
_MANY = 2000  # points, from which a number is put to the right of its dot without looking for a better place
# Places around a dot: right first, for that is where a reader looks; (-1, 0, 1) across and down.
_AROUND = ((1, -1), (1, 0), (1, 1), (-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1))
_CORNERS = ((0, 0), (1, 0), (0, 1), (1, 1))  # top left first


@dataclass(frozen=True)
class MarkerSizes:
    """In pixels of the drawing."""

    text: float  # height of a number
    dot: float  # radius
    panel: float  # height of the letters in the corner

    @property
    def line(self) -> float:
        """Width of the rings around a dot."""
        return max(1.0, self.dot / 4)

    def label(self, letters: int) -> tuple[float, float]:
        """Width and height of the field that a number of so many digits stands in."""
        return (0.62 * letters + 0.45) * self.text, 1.25 * self.text


def marker_sizes(width: float, height: float, xy: FloatArray) -> MarkerSizes:
    """For points (N, 2) in a drawing of that size: in proportion to it, smaller where points are close together.

    Never so small that they cannot be read when the whole drawing is on a screen.
    """
    side, longest = math.sqrt(width * height), max(width, height)
    least = _LEAST * max(1.0, longest / _SCREEN)
    usual = max(least, _USUAL * side)
    text = usual
    if len(xy) > 1:
        nearest = cKDTree(xy).query(xy, k=2)[0][:, 1]
        text = min(usual, max(least, _ROOM * float(np.median(nearest))))
    text = min(text, width / 4, height / 4)  # tiny drawings have room for less
    return MarkerSizes(text, 0.4 * text, min(usual, width / 8, height / 8))


def place_labels(
    xy: FloatArray, fields: FloatArray, width: float, height: float, dot: float, taken: FloatArray | None = None
) -> FloatArray:
    """Points (N, 2) and the widths and heights of their fields (N, 2) -> the fields' top-left corners (N, 2).

    Each beside its point, where it covers least of other dots, fields and what is taken (M, 4: left, top, right,
    bottom); always wholly inside the drawing.
    """
    corners = np.zeros((len(xy), 2))
    if not len(xy):
        return corners
    room = np.maximum(0.0, np.array([width, height]) - fields)  # (N, 2): the furthest corner that is inside
    gap = dot * 1.25
    dots = np.concatenate([xy - dot, xy + dot], 1)  # (N, 4)
    others = [] if taken is None else [taken]
    directions = np.array(_AROUND, float)
    placed = np.zeros((len(xy), 4))
    for number, (point, field, far) in enumerate(zip(xy, fields, room, strict=True)):
        middles = point + directions * (gap + field / 2)
        # Beside the dot, a number stands a little above or below its middle, not at a distance.
        middles[:6, 1] = point[1] + directions[:6, 1] * (dot + field[1] / 4)
        tops = np.clip(middles - field / 2, 0, far)  # (8, 2)
        best = 0
        if len(xy) <= _MANY:
            boxes = np.concatenate([tops, tops + field], 1)  # (8, 4)
            obstacles = np.concatenate([dots, placed[:number], *others])
            best = int(_overlap(boxes, obstacles).argmin())
        corners[number] = tops[best]
        placed[number] = [*tops[best], *(tops[best] + field)]
    return corners


def _overlap(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """(A, 4) and (B, 4) -> (A,): how many pixels of each box the others cover."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    covered: FloatArray = np.clip(high - low, 0, None).prod(-1).sum(1)
    return np.round(covered, 3)  # so that equal places stay equal, and the first of them wins


def emptiest_corner(xy: FloatArray, box: tuple[float, float], width: float, height: float) -> tuple[float, float]:
    """Top-left corner of a box of that width and height, in the corner of the drawing where it covers fewest points."""
    best, fewest = (0.0, 0.0), math.inf
    for right, low in _CORNERS:
        left, top = right * max(0.0, width - box[0]), low * max(0.0, height - box[1])
        inside = (xy >= (left, top)) & (xy <= (left + box[0], top + box[1]))
        if (count := int(inside.all(1).sum())) < fewest:
            best, fewest = (left, top), count
    return best
