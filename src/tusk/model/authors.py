"""The authors' published weights -> our network, with their variants switched on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from pydantic import ValidationError
from torch import Tensor

from tusk.config import ModelConfig
from tusk.errors import DataError
from tusk.model.network import Network
from tusk.presets import explain

_LAYERS = {"0": "conv1", "1": "norm1", "3": "conv2", "4": "norm2"}
_UNETS = {"encoder.encoder_features": "encoder.unet", "decoder.decoder": "decoder.unet"}
_LEVELS = 4


def network_from_authors(
    state: Mapping[str, Tensor | npt.NDArray[Any]],
    *,
    keypoints: int,
    kernel: int,
    layers: bool,
    truncated: bool = True,
    count_border: bool = True,
    mean_square: bool = True,
    name: str = "authors' checkpoint",
) -> Network:
    """A network with these weights: names and shapes as in the authors' checkpoints, widths read off the shapes.

    The authors' variants (descriptors read at the truncated pixel, window cells beyond the border counted, 20 x mean
    squared distance for the types) are on, and each can be switched off. `name` is what errors call the weights.
    """
    tensors = {key.removeprefix("module."): _as_tensor(name, key, value) for key, value in state.items()}
    first = _take(tensors, "encoder.encoder_features.dconv_down1.0.weight", name)
    last = _take(tensors, "encoder.encoder_features.conv_last.weight", name)
    prototype = _take(tensors, "prototype", name)
    if first.ndim != 4 or last.ndim != 4 or prototype.ndim != 2:
        raise _misshapen(name, "prototype", prototype.shape, "a matrix of types x channels")
    try:
        config = ModelConfig(
            keypoints=keypoints,
            types=prototype.shape[0],
            channels=last.shape[0],
            width=first.shape[0],
            levels=_LEVELS,
            window=kernel,
            decode="layers" if layers else "plain",
            descriptor_read="truncated" if truncated else "bilinear",
            count_border=count_border,
            type_distance="mean-square" if mean_square else "norm",
            type_scale=20.0 if mean_square else 1.0,
        )
    except ValidationError as error:
        why = f"its weights are of a network that cannot be ({explain(error, 'model').why})"
        raise DataError(name, why, "use a checkpoint of one network") from error
    with torch.device("meta"):  # shapes first: a weight may claim to be larger than its file
        network = Network(config)
    statistics = {"descriptor_space.running_mean": 0.0, "descriptor_space.running_variance": 1.0}  # not used by theirs
    ours = {}
    for key, expected in network.state_dict().items():
        if key in statistics:
            ours[key] = torch.full(expected.shape, statistics[key])
            continue
        theirs = _authors_name(key)
        value = _take(tensors, theirs, name)
        if value.shape != expected.shape:
            raise _misshapen(name, theirs, value.shape, f"shape {tuple(expected.shape)}")
        ours[key] = value.to(torch.float32)
        if not bool(torch.isfinite(ours[key]).all()):
            why = f"the weight '{theirs}' holds values that are not finite numbers"
            raise DataError(name, why, "use an intact copy of the checkpoint")
    network.to_empty(device="cpu").load_state_dict(ours)
    return network.eval()


def read_authors_file(path: Path) -> dict[str, Tensor]:
    """The weights in one of the authors' released torch files; nothing but tensors and plain values is let in."""
    if not path.is_file():
        raise DataError(str(path), "there is no such file", "give the path of a released checkpoint")
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise DataError(
            str(path),
            f"it is not a torch file that opens without running code ({type(error).__name__})",
            "use the checkpoint as the authors released it",
        ) from error
    state = _find_state(loaded)
    if state is None:
        raise DataError(str(path), "it holds no 'prototype' among its weights", "use a checkpoint of the whole network")
    return state


def _find_state(loaded: object, depth: int = 0) -> dict[str, Tensor] | None:
    """The mapping of names to tensors, which may lie inside another mapping beside epochs and optimisers."""
    if not isinstance(loaded, Mapping) or depth > 3:
        return None
    names = [str(key).removeprefix("module.") for key in loaded]
    if "prototype" in names:
        return {str(key): value for key, value in loaded.items() if isinstance(value, Tensor)}
    for value in loaded.values():
        state = _find_state(value, depth + 1)
        if state is not None:
            return state
    return None


def _authors_name(key: str) -> str:
    """Our parameter name -> theirs."""
    if key == "prototypes.weight":
        return "prototype"
    if head := re.fullmatch(r"encoder\.head\.(\d)\.(\w+)", key):
        return f"encoder.heatmap_header.{head[1]}.{head[2]}"
    for theirs, ours in _UNETS.items():
        if not key.startswith(ours + "."):
            continue
        rest = key.removeprefix(ours + ".")
        if rest.startswith("last."):
            return f"{theirs}.conv_{rest}"
        way, index, layer, kind = rest.split(".")
        number = {value: place for place, value in _LAYERS.items()}[layer]
        level = int(index) + 1 if way == "down" else _LEVELS - 1 - int(index)
        return f"{theirs}.dconv_{way}{level}.{number}.{kind}"
    raise AssertionError(f"no authors' name for {key}")


def _as_tensor(name: str, key: str, value: Tensor | npt.NDArray[Any]) -> Tensor:
    tensor = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_complex():
        raise DataError(name, f"the weight '{key}' is not an array of real numbers", "use a checkpoint of one network")
    return tensor.detach()


def _take(tensors: Mapping[str, Tensor], key: str, name: str) -> Tensor:
    if key not in tensors:
        raise DataError(name, f"the weight '{key}' is missing", "use a complete checkpoint of the authors' network")
    return tensors[key]


def _misshapen(name: str, key: str, shape: torch.Size, wanted: str) -> DataError:
    return DataError(
        name, f"the weight '{key}' has shape {tuple(shape)} instead of {wanted}", "use a checkpoint of one network"
    )
