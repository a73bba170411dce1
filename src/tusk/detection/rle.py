"""Masks as COCO writes them: lengths of runs down the columns, packed into a short text."""

from __future__ import annotations

import numpy as np

from tusk.detection.detections import BoolArray


def run_lengths(mask: BoolArray) -> list[int]:
    """(H, W) -> lengths of the runs of 0 and 1 in turn, column after column; the first is of 0 and may be empty."""
    flat = mask.T.reshape(-1)
    starts = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    edges = np.concatenate([[0], starts, [flat.size]])
    counts: list[int] = np.diff(edges).tolist()
    return [0, *counts] if flat.size and flat[0] else counts


def packed(counts: list[int]) -> str:
    """The run lengths as text.

    From the fourth on, a length is told as its difference from the one two before. A number is cut into groups of five
    bits, lowest first; a sixth bit says that more follow, and the last group's highest bit is the sign. 48 is added to
    each group, which makes it a printable letter.
    """
    letters = []
    for place, count in enumerate(counts):
        rest = count - counts[place - 2] if place > 2 else count
        while True:
            group = rest & 31
            rest >>= 5
            done = rest == (-1 if group & 16 else 0)
            letters.append(chr(48 + (group if done else group | 32)))
            if done:
                break
    return "".join(letters)
