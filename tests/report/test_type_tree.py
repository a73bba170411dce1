"""The tree of merges: read with suspicion, drawn with every cluster once."""

import re

import pytest

from tusk.report.type_tree import TypeTree, read_tree, tree_html

# Clusters 0 and 2 are one type, 1 and 3 are two others; 1 and 3 would come next.
STORED = [[0, 2, 0.8], [1, 3, 0.25], [4, 5, 0.0]]
MEMBERS = (0, 1, 0, 2)
COLOURS = [(200, 0, 0), (0, 200, 0), (0, 0, 200)]


def test_leaves_and_next_joins():
    tree = read_tree(STORED, MEMBERS)
    assert tree == TypeTree(MEMBERS, ((0, 2, 0.8), (1, 3, 0.25), (4, 5, 0.0)))
    assert tree.leaves(6) == [0, 2, 1, 3] and tree.leaves(5) == [1, 3]
    assert tree.next_joins() == [([1], [2], 0.25)]


def test_every_cluster_and_join_is_drawn_and_the_next_merge_is_named():
    drawn = tree_html(read_tree(STORED, MEMBERS), COLOURS)
    assert len(re.findall("<rect", drawn)) == 4 and len(re.findall("<path", drawn)) == 3
    assert "type 1 and type 2: 25%" in drawn and drawn.count('stroke-dasharray="none"') == 1


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "tree",
        [],
        [[0, 1, 0.5]],
        [[0, 1, 0.5], [2, 3, 0.4], [4, 9, 0.1]],
        [[0, 1, 0.5], [0, 3, 0.4], [4, 5, 0.1]],
        [[0, 0, 0.5], [2, 3, 0.4], [4, 5, 0.1]],
        [[0, 1, "x"], [2, 3, 0.4], [4, 5, 0.1]],
        [[0, 1, float("nan")], [2, 3, 0.4], [4, 5, 0.1]],
        [[0, 1], [2, 3, 0.4], [4, 5, 0.1]],
    ],
)
def test_what_is_no_tree_is_none(stored):
    assert read_tree(stored, MEMBERS) is None
    assert read_tree(STORED, None) is None
