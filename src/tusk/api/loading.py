"""A model by its name or file; of an ONNX file without torch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from tusk.detection.onnx_model import OnnxModel
from tusk.errors import UsageError

if TYPE_CHECKING:
    from tusk.api.model import Model


def load(name: str | os.PathLike[str], device: str = "auto") -> Model:
    """A model that comes with tusk, by its name, or one in a file or run folder that tusk saved.

    device: 'cpu', 'cuda', 'cuda:1', 'mps', or 'auto' for a GPU where there is one. An ONNX file that 'tusk export'
    wrote is run by onnxruntime, on the CPU and without torch: it detects only.
    """
    if os.fspath(name).endswith(".onnx"):
        if device not in ("cpu", "auto"):
            raise UsageError("device", f"an ONNX file runs on the CPU, not on '{device}'", "leave it out")
        # To type checkers a model: `detect` and `detect_iter` are the same, and the rest says that it cannot.
        return cast("Model", OnnxModel(name))
    from tusk.api import model

    return model.load(name, device)
