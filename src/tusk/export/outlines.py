"""Masks as polygons that go along the edges of pixels, so that nothing is lost: filled, they give the same mask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tusk.detection.detections import BoolArray

Ring = list[tuple[int, int]]  # corners of pixels as x, y from the picture's top-left corner; the first is not repeated


@dataclass(frozen=True)
class Polygon:
    """An outline, and the outlines of the holes in it."""

    outer: Ring
    holes: tuple[Ring, ...] = ()


def polygons_of(mask: BoolArray) -> list[Polygon]:
    """One for each connected part of the mask (H, W), diagonal neighbours not connected."""
    rings = _rings(mask)
    outer = [ring for ring in rings if _area(ring) > 0]
    holes: dict[int, list[Ring]] = {number: [] for number in range(len(outer))}
    for ring in rings:
        if _area(ring) < 0:
            holes[_around(ring, outer)].append(ring)
    return [Polygon(ring, tuple(holes[number])) for number, ring in enumerate(outer)]


def _rings(mask: BoolArray) -> list[Ring]:
    """Closed ways along the edges, the mask on the right-hand side as one sees the picture."""
    padded = np.pad(mask, 1)
    # From each corner, in which directions the edge goes on: right, down, left, up.
    onwards: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def add(inside: BoolArray, outside: BoolArray, start: tuple[int, int], step: tuple[int, int]) -> None:
        for row, column in np.argwhere(inside & ~outside).tolist():
            corner = (column + start[0], row + start[1])
            onwards.setdefault(corner, []).append(step)

    inner = padded[1:-1, 1:-1]
    add(inner, padded[:-2, 1:-1], (0, 0), (1, 0))  # nothing above: along the top to the right
    add(inner, padded[1:-1, 2:], (1, 0), (0, 1))  # nothing on the right: downwards
    add(inner, padded[2:, 1:-1], (1, 1), (-1, 0))  # nothing below: to the left
    add(inner, padded[1:-1, :-2], (0, 1), (0, -1))  # nothing on the left: upwards
    rings: list[Ring] = []
    while onwards:
        rings += _split(_walk(onwards, next(iter(onwards))))
    return rings


def _walk(onwards: dict[tuple[int, int], list[tuple[int, int]]], start: tuple[int, int]) -> Ring:
    """Along one ring back to its start; its steps are taken out. Where two pixels meet at a corner, to the right."""
    ring: Ring = []
    corner, before = start, (0, 0)
    while corner != start or not ring:
        steps = onwards[corner]
        right = (-before[1], before[0])
        step = right if right in steps else steps[0]
        steps.remove(step)
        if not steps:
            del onwards[corner]
        if step != before:
            ring.append(corner)
        corner, before = (corner[0] + step[0], corner[1] + step[1]), step
    (x, y), (after_x, after_y) = ring[0], ring[1]
    if before == (np.sign(after_x - x), np.sign(after_y - y)):
        ring.pop(0)  # it began in the middle of a straight edge
    return ring


def _split(ring: Ring) -> list[Ring]:
    """Rings that touch themselves at no corner: what lies between two visits of one is a ring of its own."""
    parts: list[Ring] = []
    way: Ring = []
    place: dict[tuple[int, int], int] = {}
    for corner in ring:
        if corner in place:
            since = place[corner]
            parts.append(way[since:])
            for passed in way[since + 1 :]:
                del place[passed]
            del way[since + 1 :]
        else:
            place[corner] = len(way)
            way.append(corner)
    return [*parts, way]


def _area(ring: Ring) -> float:
    """Positive for an outline, negative for a hole."""
    x, y = np.array(ring, np.float64).T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def _around(hole: Ring, outer: list[Ring]) -> int:
    """Which outline the hole lies in: the smallest of those that do."""
    # The middle of the pixel below and right of its first edge lies beside that edge, within or without.
    (x, y), (next_x, next_y) = hole[0], hole[1]
    step_x, step_y = np.sign(next_x - x), np.sign(next_y - y)
    inside = (x + step_x / 2 + step_y / 2, y + step_y / 2 - step_x / 2)  # on the left-hand side: in the hole
    fitting = [(abs(_area(ring)), number) for number, ring in enumerate(outer) if _contains(ring, inside)]
    return min(fitting)[1]


def _contains(ring: Ring, point: tuple[float, float]) -> bool:
    """Whether a ray to the right crosses it an odd number of times."""
    corners = np.array(ring, np.float64)
    following = np.roll(corners, -1, 0)
    upright = corners[:, 0] == following[:, 0]
    low, high = np.minimum(corners[:, 1], following[:, 1]), np.maximum(corners[:, 1], following[:, 1])
    crossed = upright & (low <= point[1]) & (point[1] < high) & (corners[:, 0] > point[0])
    return bool(crossed.sum() % 2)
