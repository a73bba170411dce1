"""Keypoints with sizes as ONNX, as `extract_sized_keypoints` and `suppress_by_size` find them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tusk.export.onnx.builder import Builder
from tusk.export.onnx.encoder import Maps
from tusk.export.onnx.points import Places, peaks, read_bilinear, soft_argmax
from tusk.model.keypoints import AROUND, CANDIDATES, LEAST_SCORE, SPACING
from tusk.model.network import Network


def add_sized_keypoints(
    graph: Builder, network: Network, maps: Maps, keypoints: str, window: int, least: float
) -> Places:
    """The best things of each map: of two peaks closer than 0.6 radii only the better one."""
    assert maps.radius is not None
    flat, value = peaks(graph, maps, window)
    number = graph.op("Mul", keypoints, graph.whole(CANDIDATES))
    number = graph.op("Min", number, graph.side(flat, 1))
    value, index = graph.op("TopK", value, number, outputs=2)  # (B, N) each
    row = graph.op("Div", index, maps.columns)
    column = graph.op("Sub", index, graph.op("Mul", row, maps.columns))
    radius = graph.op("GatherElements", graph.reshape(maps.radius, 0, -1), index, axis=1)
    valid = graph.op("GreaterOrEqual", value, graph.number(max(least, LEAST_SCORE)))
    kept = _suppressed(graph, graph.op("Cast", column, to=1), graph.op("Cast", row, to=1), radius, valid)
    value = graph.op("Where", kept, value, graph.number(-1))
    value, order = graph.op("TopK", value, graph.op("Min", keypoints, number), outputs=2)  # (B, K) each
    index = graph.op("GatherElements", index, order, axis=1)
    xy = soft_argmax(graph, maps, flat, index, AROUND, network.config.temperature)
    both = graph.op("Concat", maps.score, maps.radius, axis=1)
    read = read_bilinear(graph, maps, both, xy)  # (B, K, 2)
    score, radius = graph.op("Split", read, outputs=2, axis=2, num_outputs=2)
    score, radius = (graph.op("Squeeze", part, graph.whole(2)) for part in (score, radius))
    found = graph.op("GreaterOrEqual", value, graph.number(0))
    return Places(xy, graph.op("Where", found, score, graph.number(0)), radius)


def _suppressed(graph: Builder, x: str, y: str, radius: str, valid: str) -> str:
    """(B, N) each, best first -> (B, N) bool: greedy suppression.

    Who is kept depends on those before it alone. So what is asked of all at once, again and again, is right for one
    more of them each time, and where nothing changes any more it is right for all.
    """

    def pairs(kind: str, values: str) -> str:
        return str(graph.op(kind, graph.unsqueeze(values, 2), graph.unsqueeze(values, 1)))  # (B, N, N)

    across, down = pairs("Sub", x), pairs("Sub", y)
    apart = graph.op("Sqrt", graph.op("Add", graph.op("Mul", across, across), graph.op("Mul", down, down)))
    near = graph.op("Less", apart, graph.op("Mul", pairs("Max", radius), graph.number(SPACING)))
    count = graph.op("Squeeze", graph.side(radius, 1))
    places = graph.op("Range", graph.constant(0, np.int64), count, graph.constant(1, np.int64))
    before = graph.op("Less", graph.unsqueeze(places, 0), graph.unsqueeze(places, 1))  # (N, N): column before row
    near = graph.op("Cast", graph.op("And", near, before), to=1)
    axes, zero = graph.whole(1), graph.number(0)
    last = graph.whole(2)
    nodes = [
        helper.make_node("Cast", ["kept"], ["kept_number"], to=1),
        helper.make_node("Unsqueeze", ["kept_number", axes], ["kept_row"]),
        helper.make_node("Mul", ["kept_row", near], ["hidden_by"]),
        helper.make_node("ReduceMax", ["hidden_by", last], ["hidden_number"], keepdims=0),
        helper.make_node("Equal", ["hidden_number", zero], ["is_free"]),
        helper.make_node("And", ["is_free", valid], ["kept_now"]),
        helper.make_node("Xor", ["kept_now", "kept"], ["differs"]),
        helper.make_node("Cast", ["differs"], ["differs_number"], to=1),
        helper.make_node("ReduceMax", ["differs_number"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", zero], ["go_on"]),
    ]
    body = helper.make_graph(
        nodes,
        "suppress",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("kept", TensorProto.BOOL, [None, None]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("kept_now", TensorProto.BOOL, [None, None]),
        ],
    )
    return str(graph.op("Loop", count, graph.constant(True, np.bool_), valid, body=body))
