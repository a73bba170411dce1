"""One model, one safetensors file: weights, configuration, where it comes from, and a checksum over all of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tusk.config import Config
from tusk.config.renames import upgrade
from tusk.errors import DataError
from tusk.io import atomic_write
from tusk.model.network import Network

_FORMAT, _VERSION = "tusk-model", 1


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
        return max(0.0, float(stored)) if isinstance(stored, int | float) else 0.0

    def fingerprint(self) -> str:
        """The same for the same weights and settings only."""
        return _digest(dict(self.network.state_dict()), self.config.model_dump_json(), "")


def save_model(path: Path, model: StoredModel) -> None:
    """Write the file, all of it or nothing: a reader never sees half a model."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.network.state_dict().items()}
    config = model.config.model_dump_json()
    provenance = json.dumps(model.provenance)
    metadata = {
        "format": _FORMAT,
        "version": str(_VERSION),
        "config": config,
        "provenance": provenance,
        "sha256": _digest(tensors, config, provenance),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, save(tensors, metadata))


def load_model(path: Path) -> StoredModel:
    """Read what `save_model` wrote; anything else, or anything damaged, is refused. Pickle is never opened."""
    if not path.is_file():
        raise DataError(str(path), "there is no such model file", "check the path")
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise DataError(
            str(path), f"it is not a readable safetensors file ({error})", "use a file that tusk saved"
        ) from error
    if metadata.get("format") != _FORMAT:
        raise DataError(str(path), "it is a safetensors file, but not a tusk model", "use a file that tusk saved")
    if int(metadata.get("version", "0")) > _VERSION:
        raise DataError(str(path), f"its format {metadata['version']} is newer than this tusk reads", "upgrade tusk")
    config_json, provenance = metadata.get("config", ""), metadata.get("provenance", "{}")
    if metadata.get("sha256") != _digest(tensors, config_json, provenance):
        raise DataError(str(path), "its content does not match its checksum", "copy or download the file again")
    try:
        # Silently: whoever loads a model did not write these names, and saving it writes the present ones.
        config = Config.model_validate(upgrade(json.loads(config_json))[0])
    except (ValidationError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(
            str(path), f"its configuration is not understood ({type(error).__name__})", "upgrade tusk"
        ) from error
    network = Network(config.model)
    wanted = network.state_dict()
    for name, value in wanted.items():
        if name not in tensors:
            raise DataError(str(path), f"the weight '{name}' is missing", "use a complete model file")
        if tensors[name].shape != value.shape:
            raise DataError(
                str(path),
                f"the weight '{name}' has shape {tuple(tensors[name].shape)} instead of {tuple(value.shape)}",
                "use a model file whose weights belong to its configuration",
            )
    network.load_state_dict(tensors)
    return StoredModel(network.eval(), config, json.loads(provenance))


def _digest(tensors: dict[str, Tensor], config: str, provenance: str) -> str:
    digest = hashlib.sha256()
    digest.update(config.encode() + b"\0" + provenance.encode() + b"\0")
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\0".encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
