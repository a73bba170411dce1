"""How the clusters of a training were put together to types, as a tree that a person can cut elsewhere."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tusk.detection.palette import ink_on
from tusk.report.draw import css

Colour = tuple[int, int, int]

_ROW, _WIDE, _NAMES, _EDGE = 22, 420, 92, 14  # pixels: of a leaf, of the tree, of the leaves' names, and around it
_TELLING = 0.02  # share of the clusterings: joins below it only close the tree


@dataclass(frozen=True)
class TypeTree:
    """Clusters 0 to M - 1 are leaves; join number i makes node M + i of two earlier nodes."""

    members: tuple[int, ...]  # (M,) the type of each cluster
    joins: tuple[tuple[int, int, float], ...]  # two nodes, and how often other clusterings put them together

    def leaves(self, node: int) -> list[int]:
        """The clusters under a node, in the order in which they are drawn."""
        waiting, found = [node], []
        while waiting:
            top = waiting.pop()
            if top < len(self.members):
                found.append(top)
            else:
                first, second, _ = self.joins[top - len(self.members)]
                waiting += [second, first]
        return found

    def next_joins(self) -> list[tuple[list[int], list[int], float]]:
        """The types that would come together next: those of both sides, and how often they were put together."""
        every = [(self._types(a), self._types(b), often) for a, b, often in self.joins]
        return [(a, b, often) for a, b, often in every if a != b and often >= _TELLING]

    def _types(self, node: int) -> list[int]:
        return sorted({self.members[leaf] for leaf in self.leaves(node)})


def read_tree(stored: Any, members: Sequence[int] | None) -> TypeTree | None:
    """What a model file stores; None where that is no tree: the file may be anybody's."""
    if members is None or not isinstance(stored, list | tuple) or len(stored) != len(members) - 1:
        return None
    joins, used = [], set[int]()
    for place, join in enumerate(stored):
        if not isinstance(join, list | tuple) or len(join) != 3:
            return None
        a, b, often = join
        if not (isinstance(a, int) and isinstance(b, int) and isinstance(often, int | float) and 0 <= often <= 1):
            return None
        if not (0 <= a < len(members) + place and 0 <= b < len(members) + place) or a == b or {a, b} & used:
            return None
        used |= {a, b}
        joins.append((a, b, float(often)))
    return TypeTree(tuple(members), tuple(joins))


def tree_html(tree: TypeTree, colours: Sequence[Colour]) -> str:
    """Leaves on the left, joined further to the right the more seldom they were put together."""
    count = len(tree.members)
    order = tree.leaves(2 * count - 2)
    place = {leaf: (float(_NAMES), _EDGE + _ROW * (row + 0.5)) for row, leaf in enumerate(order)}
    lines, chips = [], []
    for leaf in order:
        x, y = place[leaf]
        colour = colours[tree.members[leaf]]
        chips.append(
            f'<text x="0" y="{y + 4:.0f}">type</text><rect x="34" y="{y - 8:.0f}" width="34" height="16" rx="4" '
            f'fill="{css(colour)}"/><text x="51" y="{y + 4:.0f}" text-anchor="middle" fill="{css(ink_on(colour))}" '
            f'style="fill:{css(ink_on(colour))}">{tree.members[leaf]}</text>'
        )
    for number, (a, b, often) in enumerate(tree.joins):
        (xa, ya), (xb, yb) = place[a], place[b]
        x = _NAMES + (1 - often) * _WIDE
        same = {tree.members[leaf] for leaf in tree.leaves(count + number)}
        dash = "none" if len(same) == 1 else "4 4"
        lines.append(
            f'<path d="M{xa:.0f} {ya:.0f}H{x:.0f}V{yb:.0f}H{xb:.0f}" stroke-dasharray="{dash}"><title>put together by '
            f"{often:.0%} of the clusterings</title></path>"
        )
        place[count + number] = x, (ya + yb) / 2
    high, wide = 2 * _EDGE + _ROW * count, _NAMES + _WIDE + _EDGE
    drawn = (
        f'<svg viewBox="0 0 {wide} {high}" class="tree" role="img" aria-label="tree of merges">'
        f"{''.join(lines)}{''.join(chips)}</svg>"
    )
    words = [
        f"<li>{_types(a)} and {_types(b)}: {often:.0%}</li>"
        for a, b, often in sorted(tree.next_joins(), key=lambda one: -one[2])
    ]
    listed = (
        f'<p class="soft">Would come together next, and how often they were put together:</p><ul>{"".join(words)}</ul>'
    )
    return f'<figure class="card">{drawn}{listed if words else ""}</figure>'


def _types(numbers: Sequence[int]) -> str:
    return html.escape(("type " if len(numbers) == 1 else "types ") + ", ".join(map(str, numbers)))
