"""A trained model as one ONNX file: image -> points, scores, types, probabilities and descriptors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx import ModelProto, TensorProto, checker, helper

from tusk.detection.onnx_format import FORMAT, VERSION
from tusk.detection.settings import settings_of
from tusk.export.found import type_names
from tusk.export.onnx.builder import Builder
from tusk.export.onnx.encoder import add_encoder
from tusk.export.onnx.named import add_naming
from tusk.export.onnx.points import add_descriptors, add_keypoints, add_types
from tusk.export.onnx.sized import add_sized_keypoints
from tusk.io import atomic_write
from tusk.model.metadata import config_json
from tusk.model.network import check_size
from tusk.model.storage import StoredModel
from tusk.naming import Naming, named_types


def write_onnx(
    model: StoredModel,
    path: Path,
    names: Mapping[int, str] | None = None,
    keypoints: int | None = None,
    naming: Naming | None = None,
) -> None:
    """All of the file or nothing; names: what types are called; keypoints: by default as many as in training; naming:
    what people said of the types, which the graph follows."""
    content = onnx_model(model, titles(model, naming, names), keypoints, naming).SerializeToString()
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, content)


def titles(model: StoredModel, naming: Naming | None, names: Mapping[int, str] | None = None) -> tuple[str, ...]:
    """What every number that a type may have is called; names: over those of the naming."""
    if naming is None:
        return type_names(model.config.model.types, names)
    called = named_types(naming).titles
    return type_names(len(called), {**dict(enumerate(called)), **(names or {})})


def onnx_model(
    model: StoredModel, names: Sequence[str], keypoints: int | None = None, naming: Naming | None = None
) -> ModelProto:
    """The graph, checked, with configuration and names in its metadata."""
    network, config = model.network, model.config.model
    settings = settings_of(model, keypoints)
    check_size(config, model.config.data.size, model.config.data.size, settings.keypoints, settings.window)
    graph = Builder()
    count, window = graph.default_input("keypoints", settings.keypoints), config.window_on_map(settings.window)
    maps = add_encoder(graph, network, "image")
    if maps.radius is None:
        places = add_keypoints(graph, network, maps, count, window)
    else:
        places = add_sized_keypoints(graph, network, maps, count, window, settings.min_score)
    descriptors = add_descriptors(graph, network, maps, places.xy)
    kind, probability = add_types(graph, network, descriptors)
    score = places.score
    if naming is not None:
        kind, score = add_naming(graph, naming, kind, descriptors, score)
    half, stride = graph.number(0.5), graph.number(config.stride)
    xy = graph.op("Sub", graph.op("Mul", graph.op("Add", places.xy, half), stride), half)
    values = {"xy": xy, "score": score, "type": kind, "probability": probability, "descriptor": descriptors}
    if places.radius is not None:
        values["size"] = graph.op("Mul", places.radius, graph.number(2 * config.stride))
    for name, value in values.items():
        graph.name(value, name)
    inner = {"xy": [2], "descriptor": [config.channels]}
    outputs = [
        helper.make_tensor_value_info(
            name, TensorProto.INT64 if name == "type" else TensorProto.FLOAT, ["batch", "points", *inner.get(name, [])]
        )
        for name in values
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "config": config_json(model.config),
        "names": json.dumps(list(names)),
        "keypoints": str(settings.keypoints),
        "fingerprint": model.fingerprint(),
    }
    made = graph.model([image], outputs, metadata)
    checker.check_model(made)
    return made
