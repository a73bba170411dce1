"""What people said of the types, inside the graph: each edit as operators, in its turn."""

from __future__ import annotations

import numpy as np

from tusk.export.onnx.builder import Builder
from tusk.naming import Naming, named_types
from tusk.naming.edits import Merge, NamingEdit, Split, Teach, Vector


def add_naming(graph: Builder, naming: Naming, kind: str, descriptors: str, score: str) -> tuple[str, str]:
    """Types (B, K) of the model, descriptors (B, K, C), scores (B, K) -> named types, and scores that are 0 where the
    type is hidden: such a slot has no point. As `naming.assign`; corrections are of single pictures, and stay out."""
    for edit in naming.edits:
        kind = _moved(graph, edit, kind, descriptors)
    state = named_types(naming)
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


def _is(graph: Builder, kind: str, number: int) -> str:
    return str(graph.op("Equal", kind, graph.whole(number)))


def _where(graph: Builder, condition: str, number: int, kind: str) -> str:
    return str(graph.op("Where", condition, graph.whole(number), kind))


def _nearer(graph: Builder, descriptors: str, to: Vector, than: Vector) -> str:
    """(B, K) bool: the squares of the descriptor itself cancel out."""
    first, second = np.array(to), np.array(than)
    along = graph.op("MatMul", descriptors, graph.constant(2 * (first - second)))
    return str(graph.op("Greater", along, graph.number(float(first @ first - second @ second))))
