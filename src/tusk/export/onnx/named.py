"""What people said of the types, inside the graph: each edit as operators, in its turn."""

from __future__ import annotations

import numpy as np

from tusk.export.onnx.builder import Builder
from tusk.naming import Naming, named_types
from tusk.naming.edits import Merge, NamingEdit, Sort, Split, Teach, Vector


def add_naming(graph: Builder, naming: Naming, kind: str, descriptors: str, score: str) -> tuple[str, str]:
    """Types (B, K) of the model, descriptors (B, K, C), scores (B, K) -> named types, and scores that are 0 where the
    type is hidden: such a slot has no point. As `naming.assign`; corrections are of single pictures, and stay out."""
    state = named_types(naming)
    for edit in naming.edits:
        if isinstance(edit, Sort):
            kind = _sorted(graph, edit, kind, descriptors, state.count)
        else:
            kind = _moved(graph, edit, kind, descriptors)
    hidden = [float(number in state.types and state[number].hidden) for number in range(state.count)]
    if any(hidden):
        shown = graph.op("Gather", graph.constant(1 - np.array(hidden)), kind)
        score = graph.op("Mul", score, shown)
    return kind, score


def _moved(graph: Builder, edit: NamingEdit, kind: str, descriptors: str) -> str:
    """As `naming.assign.move`."""
    if isinstance(edit, Merge):
        return _where(graph, _is(graph, kind, edit.other), edit.into, kind)
    if isinstance(edit, Split):
        nearer = _nearer(graph, descriptors, edit.centres[1], edit.centres[0])
        return _where(graph, graph.op("And", _is(graph, kind, edit.type), nearer), edit.new, kind)
    if isinstance(edit, Teach):
        for rest in edit.rest:
            nearer = _nearer(graph, descriptors, edit.centre, rest.descriptor)
            kind = _where(graph, graph.op("And", _is(graph, kind, rest.type), nearer), edit.type, kind)
    return kind


def _sorted(graph: Builder, edit: Sort, kind: str, descriptors: str, count: int) -> str:
    """count: how many numbers types may have."""
    weights = np.array([one.weights for one in edit.kinds]).T  # (C, kinds)
    products = graph.op("MatMul", descriptors, graph.constant(weights))  # (B, K, kinds)
    products = graph.op("Add", products, graph.constant([one.bias for one in edit.kinds]))
    nearest = graph.op("ArgMax", products, axis=2, keepdims=0)
    kinds = graph.op("Gather", graph.whole(*(one.type for one in edit.kinds)), nearest)
    moves = np.isin(np.arange(count), (*edit.others, *edit.again))
    return str(graph.op("Where", graph.op("Gather", graph.constant(moves, np.bool_), kind), kinds, kind))


def _is(graph: Builder, kind: str, number: int) -> str:
    return str(graph.op("Equal", kind, graph.whole(number)))


def _where(graph: Builder, condition: str, number: int, kind: str) -> str:
    return str(graph.op("Where", condition, graph.whole(number), kind))


def _nearer(graph: Builder, descriptors: str, to: Vector, than: Vector) -> str:
    """(B, K) bool: the squares of the descriptor itself cancel out."""
    first, second = np.array(to), np.array(than)
    along = graph.op("MatMul", descriptors, graph.constant(2 * (first - second)))
    return str(graph.op("Greater", along, graph.number(float(first @ first - second @ second))))
