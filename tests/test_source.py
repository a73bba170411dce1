"""The source itself: no tensor is made in what computes without saying on which device."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tusk"
PACKAGES = ("model", "losses", "geometry", "training", "detection")
MAKERS = {
    "arange", "as_tensor", "empty", "eye", "from_numpy", "full", "linspace", "logspace", "normal", "ones", "rand",
    "randint", "randn", "randperm", "tensor", "zeros",
}  # fmt: skip
# On the CPU by intent: pictures and files, which are no part of a computation yet.
ALLOWED = {
    ("model/authors.py", "network_from_authors"): "a file of weights",
    ("model/authors.py", "_as_tensor"): "a file of weights",
    ("training/run.py", "sample_validation_images"): "pictures, which go to the device part by part",
    ("training/preview.py", "_measure"): "a first look at pictures, before there is a network",
    ("training/pieces.py", "find_pieces"): "the same",
}


def unplaced(tree):
    """Calls torch.MAKER(...) without `device`, but for those of modules in their beginning and those moved at once."""
    found = []

    def visit(node, function, inside):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function, inside = node.name if function is None else function, node.name == "__init__"
        moved = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not inside:
            of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
            placed = any(keyword.arg == "device" for keyword in node.keywords)
            if of_torch and node.func.attr in MAKERS and not placed:
                found.append((function, node.lineno, node.func.attr))
        for child in ast.iter_child_nodes(node):
            # What is in `X.to(device, ...)` lies there a moment later.
            if not (moved and child is node.func and _only_made(node.func.value)):
                visit(child, function, inside)

    visit(tree, None, False)
    return found


def _only_made(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAKERS


FILES = sorted(file for package in PACKAGES for file in (SOURCE / package).rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(SOURCE).as_posix())
def test_every_tensor_says_where_it_lies(file):
    name = file.relative_to(SOURCE).as_posix()
    found = unplaced(ast.parse(file.read_text(encoding="utf-8")))
    assert not [one for one in found if (name, one[0]) not in ALLOWED]


def test_what_is_allowed_is_still_there():
    for name, function in ALLOWED:
        found = unplaced(ast.parse((SOURCE / name).read_text(encoding="utf-8")))
        assert function in {one[0] for one in found}, f"{name}: {function} needs no exception any more"


def test_the_check_finds_what_it_looks_for():
    text = (
        "def f(x):\n    a = torch.zeros(3)\n    b = torch.ones(3, device=x.device)\n    return torch.tensor(1).to(x)\n"
    )
    assert unplaced(ast.parse(text)) == [("f", 2, "zeros")]
