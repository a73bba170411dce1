"""Peaks, soft-argmax, descriptors and types as ONNX; each step as in `model/keypoints.py` and `model/prototypes.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tusk.export.onnx.builder import INF, Builder
from tusk.export.onnx.encoder import Maps
from tusk.model.network import Network


@dataclass(frozen=True)
class Places:
    """Names of values: xy (B, K, 2) in pixels of the map, score (B, K), radius (B, K) where sizes are learnt."""

    xy: str
    score: str
    radius: str | None = None


def add_keypoints(graph: Builder, network: Network, maps: Maps, keypoints: str, window: int) -> Places:
    """The highest peaks, moved to the weighted mean of the window around them."""
    config = network.config
    flat, value = peaks(graph, maps, window)
    value, index = graph.op("TopK", value, keypoints, outputs=2)
    xy = soft_argmax(graph, maps, flat, index, window, config.temperature, count_border=config.count_border)
    score = graph.op("Squeeze", read_bilinear(graph, maps, maps.score, xy), graph.whole(2))
    found = graph.op("GreaterOrEqual", value, graph.number(0))
    return Places(xy, graph.op("Where", found, score, graph.number(0)))


def peaks(graph: Builder, maps: Maps, window: int) -> tuple[str, str]:
    """-> the score map (B, H*W), and the same with -1 wherever there is no peak."""
    flat = graph.reshape(maps.score, 0, -1)
    reach = window // 2
    pool: dict[str, Any] = {"kernel_shape": [window, window], "strides": [1, 1], "pads": [reach] * 4}
    _, where = graph.op("MaxPool", maps.score, outputs=2, **pool)
    # The first of equal ones; ONNX counts the places of all images on.
    where = graph.reshape(where, -1)
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    own = graph.op("Range", zero, graph.op("Squeeze", graph.op("Size", where)), one)
    is_peak = graph.op("Reshape", graph.op("Equal", where, own), graph.op("Shape", flat))
    return flat, graph.op("Where", is_peak, flat, graph.number(-1))


def soft_argmax(
    graph: Builder, maps: Maps, flat: str, index: str, window: int, temperature: float, *, count_border: bool = False
) -> str:
    """Peaks at index (B, K) of flat (B, H*W) -> (B, K, 2)."""
    reach, zero = window // 2, graph.whole(0)
    row = graph.op("Div", index, maps.columns)
    column = graph.op("Sub", index, graph.op("Mul", row, maps.columns))
    offset = graph.whole(*range(-reach, reach + 1))
    places, inner, insides = [], [], []
    for middle, side in ((row, maps.rows), (column, maps.columns)):
        place = graph.op("Add", graph.unsqueeze(middle, 2), offset)  # (B, K, k)
        last = graph.op("Sub", side, graph.whole(1))
        inner.append(graph.op("Min", graph.op("Max", place, zero), last))
        insides.append(graph.op("Equal", place, inner[-1]))
        places.append(graph.op("Cast", place, to=1))
    rows, columns = graph.unsqueeze(inner[0], 3), graph.unsqueeze(inner[1], 2)
    inside = graph.op("And", graph.unsqueeze(insides[0], 3), graph.unsqueeze(insides[1], 2))  # (B, K, k, k)
    cells = graph.op("Add", graph.op("Mul", rows, maps.columns), columns)  # (B, K, k, k)
    values = graph.op("GatherElements", flat, graph.reshape(cells, 0, -1), axis=1)
    values = graph.op("Reshape", values, graph.op("Shape", cells))
    logits = graph.op("Where", inside, values, graph.number(0.0 if count_border else -INF))
    logits = graph.op("Div", logits, graph.number(temperature))
    weight = graph.op("Softmax", graph.reshape(logits, 0, 0, -1), axis=-1)
    weight = graph.op("Reshape", weight, graph.op("Shape", cells))
    x = graph.total(graph.op("Mul", graph.total(weight, 2), places[1]), 2, keep=True)  # (B, K, 1)
    y = graph.total(graph.op("Mul", graph.total(weight, 3), places[0]), 2, keep=True)
    return str(graph.op("Concat", x, y, axis=2))


def read_bilinear(graph: Builder, maps: Maps, values: str, xy: str) -> str:
    """values (B, C, H, W) at xy (B, K, 2) -> (B, K, C); beyond the border the edge goes on."""
    size = graph.op("Cast", graph.op("Concat", maps.columns, maps.rows, axis=0), to=1)
    twice = graph.op("Mul", graph.op("Add", xy, graph.number(0.5)), graph.number(2))
    grid = graph.op("Sub", graph.op("Div", twice, size), graph.number(1))
    modes: dict[str, Any] = {"mode": "bilinear", "padding_mode": "border", "align_corners": 0}
    read = graph.op("GridSample", values, graph.unsqueeze(grid, 1), **modes)  # (B, C, 1, K)
    return str(graph.op("Transpose", graph.op("Squeeze", read, graph.whole(2)), perm=[0, 2, 1]))


def _read_truncated(graph: Builder, maps: Maps, values: str, xy: str) -> str:
    """The authors' reading: the pixel at the location with its fraction cut off."""
    whole = graph.op("Cast", xy, to=7)
    last = graph.op("Sub", graph.op("Concat", maps.columns, maps.rows, axis=0), graph.whole(1))
    whole = graph.op("Min", graph.op("Max", whole, graph.whole(0)), last)
    x, y = graph.op("Split", whole, outputs=2, axis=2, num_outputs=2)  # (B, K, 1) each
    place = graph.op("Add", graph.op("Mul", y, maps.columns), x)
    channels = graph.reshape(graph.op("Transpose", values, perm=[0, 2, 3, 1]), 0, -1, graph.side(values, 1))
    shape = graph.op("Concat", graph.op("Shape", place, start=0, end=2), graph.side(values, 1), axis=0)
    return str(graph.op("GatherElements", channels, graph.op("Expand", place, shape), axis=1))


def add_descriptors(graph: Builder, network: Network, maps: Maps, xy: str) -> str:
    """The feature map at xy (B, K, 2) -> (B, K, C) of length 1."""
    read = read_bilinear if network.config.descriptor_read == "bilinear" else _read_truncated
    raw = read(graph, maps, maps.features, xy)
    space = network.descriptor_space
    if space.space == "standardised":
        raw = graph.op("Sub", raw, graph.constant(space.running_mean))
        raw = graph.op("Div", raw, graph.constant((space.running_variance + 1e-6).sqrt()))
    length = graph.op("Sqrt", graph.total(graph.op("Mul", raw, raw), 2, keep=True))
    return str(graph.op("Div", raw, graph.op("Max", length, graph.number(1e-12))))


def add_types(graph: Builder, network: Network, descriptors: str) -> tuple[str, str]:
    """Descriptors (B, K, C) -> the type (B, K) and its probability (B, K)."""
    prototypes = network.prototypes
    unit = prototypes.unit().detach()  # (M, C)
    square = graph.total(graph.op("Mul", descriptors, descriptors), 2, keep=True)
    square = graph.op("Add", square, graph.constant(unit.square().sum(-1)))
    products = graph.op("MatMul", descriptors, graph.constant((2 * unit.T).contiguous()))
    square = graph.op("Max", graph.op("Sub", square, products), graph.number(0))
    if prototypes.distance == "mean-square":
        distance = graph.op("Div", square, graph.number(unit.shape[1]))
    else:
        distance = graph.op("Sqrt", graph.op("Add", square, graph.number(1e-12)))
    probability = graph.op("Softmax", graph.op("Mul", distance, graph.number(-prototypes.scale)), axis=-1)
    if prototypes.members is not None:
        members = torch.nn.functional.one_hot(torch.tensor(prototypes.members), prototypes.types)
        probability = graph.op("MatMul", probability, graph.constant(members.float()))
    kind = graph.op("ArgMax", probability, axis=2, keepdims=0)
    return kind, graph.op("ReduceMax", probability, graph.whole(2), keepdims=0)
