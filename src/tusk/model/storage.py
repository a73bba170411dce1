"""One model, one safetensors file: weights, configuration, where it comes from, and a checksum over all of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tusk.config import Config
from tusk.errors import DataError, shortened
from tusk.io import atomic_write
from tusk.model.metadata import FORMAT, VERSION, config_json, read_metadata, storable
from tusk.model.network import Network

_MOST_HEADER = 24 << 20  # bytes; those of the models that come with tusk have 20,000
_KIND = "F32"  # safetensors' name of the type that all weights have


@dataclass(frozen=True)
class StoredModel:
    """A network with the whole configuration that made it."""

    network: Network
    config: Config
    provenance: dict[str, Any] = field(default_factory=dict)  # command, seed, minutes and so on: for people to read

    @property
    def least_gain(self) -> float:
        """Keypoints of a lower gain are no objects, as far as training could tell without labels; 0 if it could not."""
        stored = self.provenance.get("least_gain")
        return max(0.0, float(stored)) if isinstance(stored, int | float) and math.isfinite(stored) else 0.0

    def fingerprint(self) -> str:
        """The same for the same weights and settings only."""
        return _digest(dict(self.network.state_dict()), config_json(self.config), "")


def save_model(path: Path, model: StoredModel) -> None:
    """Write the file, all of it or nothing: a reader never gets half a model."""
    state = model.network.state_dict()
    tensors = {name: value.detach().to("cpu", torch.float32).contiguous() for name, value in state.items()}
    config, provenance = storable(model.config, model.provenance)
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "config": config,
        "provenance": provenance,
        "sha256": _digest(tensors, config, provenance),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, save(tensors, metadata))


def load_model(path: Path) -> StoredModel:
    """Read what `save_model` wrote; anything else, or anything damaged, is refused. Pickle is never opened.

    Names, types and shapes of the weights are compared with the configuration's before any weight is read and before
    the network takes any memory.
    """
    if not path.is_file():
        raise DataError(str(path), "there is no such model file", "check the path")
    _check_header_size(path)
    try:
        with safe_open(path, "pt") as file:
            metadata = read_metadata(path, file.metadata() or {})
            with torch.device("meta"):
                network = Network(metadata.config.model)
            wanted = network.state_dict()
            _check_table(path, file, wanted)
            tensors = {name: file.get_tensor(name) for name in wanted}
            if metadata.sha256 != _digest(tensors, metadata.config_text, metadata.provenance_text):
                raise DataError(str(path), "its content does not match its checksum", "copy or download the file again")
            for name, value in tensors.items():
                if not bool(torch.isfinite(value).all()):
                    why = f"the weight '{name}' holds values that are not finite numbers"
                    raise DataError(str(path), why, "use another copy, or train again")
            network.to_empty(device="cpu").load_state_dict(tensors)
    except (SafetensorError, OSError) as error:
        why = f"it is not a readable safetensors file ({shortened(str(error), 200)})"
        raise DataError(str(path), why, "use a file that tusk saved") from error
    return StoredModel(network.eval(), metadata.config, metadata.provenance)


def _check_header_size(path: Path) -> None:
    """Before the header becomes objects in memory. A file begins with the length of its header."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
    except OSError as error:
        raise DataError(str(path), f"it cannot be read ({error.strerror})", "check the file's permissions") from error
    if length > _MOST_HEADER:
        why = f"it is not a readable safetensors file (its header would have {length:,} bytes)"
        raise DataError(str(path), why, "use a file that tusk saved")


def _check_table(path: Path, file: Any, wanted: Mapping[str, Tensor]) -> None:
    """The names, types and shapes in the file's header against those that the configuration asks for."""
    stored: set[str] = set(file.keys())
    for name, value in wanted.items():
        if name not in stored:
            raise DataError(str(path), f"the weight '{name}' is missing", "use a complete model file")
        entry = file.get_slice(name)
        shape, kind = tuple(entry.get_shape()), str(entry.get_dtype())
        if shape != tuple(value.shape):
            raise DataError(
                str(path),
                f"the weight '{name}' has shape {shortened(str(shape))} instead of {tuple(value.shape)}",
                "use a model file whose weights belong to its configuration",
            )
        if kind != _KIND:
            raise DataError(str(path), f"the weight '{name}' is of type {kind} instead of {_KIND}", "save it anew")
    others = stored - wanted.keys()
    if others:
        why = f"it holds the weight '{shortened(min(others))}', for which its network has no place"
        raise DataError(str(path), why, "use a model file whose weights belong to its configuration")


def _digest(tensors: dict[str, Tensor], config: str, provenance: str) -> str:
    digest = hashlib.sha256()
    digest.update(config.encode() + b"\0" + provenance.encode() + b"\0")
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\0".encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
