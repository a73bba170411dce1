"""The encoder as ONNX: image -> feature map, score map and, where sizes are learnt, radius map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from tusk.data.flat_field import LEVEL, THRESHOLD
from tusk.export.onnx.builder import Builder
from tusk.model.network import Network
from tusk.model.unet import ChannelNorm, DoubleConv, UNet


@dataclass(frozen=True)
class Maps:
    """Names of values, each (B, ., ceil(H/s), ceil(W/s)); rows and columns are their sides, (1,) each."""

    features: str
    score: str
    radius: str | None
    rows: str
    columns: str


def add_encoder(graph: Builder, network: Network, image: str) -> Maps:
    """image (B, 3, H, W) in [0, 1], of any size -> the maps without what the padding adds."""
    config, encoder = network.config, network.encoder
    x = _padded(graph, image, config.multiple)
    if encoder.sizes is not None:
        x = graph.op("Sub", x, graph.number(LEVEL))
        x = graph.op("Div", x, graph.number(2 * THRESHOLD))
    if config.stride > 1:
        x = graph.op("SpaceToDepth", x, blocksize=config.stride)
    trunk = _trunk(graph, encoder.unet, x, config.stride)
    features = _convolution(graph, encoder.unet.last, trunk)
    radius = None
    if encoder.sizes is None:
        score = _layers(graph, encoder.head, features)
    else:
        score = _layers(graph, encoder.head, trunk)
        least, most = encoder.log_radius_range()
        log_radius = _layers(graph, encoder.radius_head, trunk)
        log_radius = graph.op("Clip", log_radius, graph.number(least), graph.number(most))
        radius = graph.op("Exp", log_radius)
    score = graph.op("Sigmoid", score)
    rows, columns = (_parts(graph, graph.side(image, axis), config.stride) for axis in (2, 3))

    def cut(value: str) -> str:
        ends = graph.op("Concat", rows, columns, axis=0)
        return str(graph.op("Slice", value, graph.whole(0, 0), ends, graph.whole(2, 3)))

    return Maps(cut(features), cut(score), None if radius is None else cut(radius), rows, columns)


def _parts(graph: Builder, side: str, step: int) -> str:
    """side / step, rounded up."""
    return str(graph.op("Div", graph.op("Add", side, graph.whole(step - 1)), graph.whole(step)))


def _padded(graph: Builder, image: str, step: int) -> str:
    """On the right and below, the edge goes on."""
    below, right = (graph.op("Mod", graph.op("Neg", graph.side(image, axis)), graph.whole(step)) for axis in (2, 3))
    pads = graph.op("Concat", graph.whole(0, 0), below, right, axis=0)
    return str(graph.op("Pad", image, pads, "", graph.whole(2, 3), mode="edge"))


def _trunk(graph: Builder, unet: UNet, x: str, stride: int) -> str:
    """All of the U-Net but its last convolution."""
    skips: list[str] = []
    for number, block in enumerate(unet.down):
        assert isinstance(block, DoubleConv)
        if number:
            x = graph.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = _double(graph, block, x, stride if number == 0 else 1)
        skips.append(x)
    skips.pop()
    mode = "align_corners" if unet.align_corners else "half_pixel"
    for block in unet.up:
        assert isinstance(block, DoubleConv)
        scales = graph.constant([1, 1, 2, 2])
        x = graph.op("Resize", x, "", scales, mode="linear", coordinate_transformation_mode=mode)
        x = _double(graph, block, graph.op("Concat", x, skips.pop(), axis=1))
    return x


def _double(graph: Builder, block: DoubleConv, x: str, folded: int = 1) -> str:
    x = _layers(graph, [], _convolution(graph, block.conv1, x, folded))
    x = graph.op("Relu", _norm(graph, block.norm1, x))
    return str(graph.op("Relu", _norm(graph, block.norm2, _convolution(graph, block.conv2, x))))


def _layers(graph: Builder, layers: nn.Sequential | list[nn.Module], x: str) -> str:
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            x = _convolution(graph, layer, x)
        elif isinstance(layer, nn.ReLU):
            x = graph.op("Relu", x)
        elif isinstance(layer, nn.SiLU):
            x = graph.op("Mul", x, graph.op("Sigmoid", x))
        elif isinstance(layer, nn.GroupNorm | ChannelNorm):
            x = _norm(graph, layer, x)
        else:
            raise TypeError(type(layer).__name__)
    return x


def _convolution(graph: Builder, layer: nn.Conv2d, x: str, folded: int = 1) -> str:
    """folded: the image was folded by ONNX's SpaceToDepth, which numbers channels otherwise than torch does."""
    weight: Tensor = layer.weight.detach()
    if folded > 1:
        outputs, inputs, high, wide = weight.shape
        weight = weight.view(outputs, inputs // folded**2, folded**2, high, wide).transpose(1, 2).reshape_as(weight)
    reach = layer.kernel_size[0] // 2
    pads = [reach] * 4
    if reach and layer.padding_mode == "replicate":
        x = graph.op("Pad", x, graph.whole(*pads), "", graph.whole(2, 3), mode="edge")
        pads = [0] * 4
    bias = [] if layer.bias is None else [graph.constant(layer.bias)]
    return str(graph.op("Conv", x, graph.constant(weight), *bias, kernel_shape=list(layer.kernel_size), pads=pads))


def _norm(graph: Builder, layer: nn.Module, x: str) -> str:
    if isinstance(layer, ChannelNorm):
        mean = graph.op("ReduceMean", graph.op("Mul", x, x), graph.whole(1), keepdims=1)
        x = graph.op("Div", x, graph.op("Sqrt", graph.op("Add", mean, graph.number(1e-4))))
    elif isinstance(layer, nn.GroupNorm):
        groups = layer.num_groups
        if groups == layer.num_channels:
            scale, shift = graph.constant(layer.weight), graph.constant(layer.bias)
            return str(graph.op("InstanceNormalization", x, scale, shift, epsilon=layer.eps))
        ones, zeros = graph.constant(np.ones(groups)), graph.constant(np.zeros(groups))
        flat = graph.reshape(x, 0, groups, -1)
        flat = graph.op("InstanceNormalization", flat, ones, zeros, epsilon=layer.eps)
        x = graph.op("Reshape", flat, graph.op("Shape", x))
    else:
        raise TypeError(type(layer).__name__)
    x = graph.op("Mul", x, graph.constant(layer.weight.detach()[:, None, None]))
    return str(graph.op("Add", x, graph.constant(layer.bias.detach()[:, None, None])))
