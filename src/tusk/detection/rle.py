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

    From the fourth on, a length is given as its difference from the one two before. A number is cut into groups of five
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


def unpacked(text: str) -> list[int]:
    """The run lengths that `packed` was given."""
    counts: list[int] = []
    number = shift = 0
    for letter in text:
        group = ord(letter) - 48
        number |= (group & 31) << shift
        shift += 5
        if group & 32:
            continue
        if group & 16:
            number -= 1 << shift
        counts.append(number + counts[-2] if len(counts) > 2 else number)
        number = shift = 0
    return counts


def mask_from(counts: list[int], height: int, width: int) -> BoolArray:
    """The mask that `run_lengths` was given; ValueError where the runs do not fill it."""
    flat = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
    if flat.size != height * width:
        raise ValueError(f"runs of {flat.size} pixels do not fill {width} x {height}")
    return flat.reshape(width, height).T
