"""Operators and constants of an ONNX graph, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from torch import Tensor

OPSET, IR = 18, 9  # old enough for every runtime of the last years
INF = float("inf")


class Builder:
    """A graph in the making; values are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: dict[bytes, str] = {}
        self._initializers: list[TensorProto] = []
        self._defaults: list[Any] = []

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """One operator; -> the name of its output, or of each of several."""
        names = [f"{kind.lower()}_{len(self._nodes)}_{number}" for number in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def name(self, value: str, name: str) -> None:
        """Give a value the name of an output of the graph."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))

    def constant(self, value: npt.ArrayLike | Tensor, kind: type = np.float32) -> str:
        """A constant; the same one is stored once."""
        if isinstance(value, Tensor):
            value = value.detach().cpu().numpy()
        array: npt.NDArray[Any] = np.ascontiguousarray(value, kind).reshape(np.shape(value))
        key = repr((array.dtype.str, array.shape)).encode() + array.tobytes()
        if key not in self._constants:
            self._constants[key] = f"constant_{len(self._constants)}"
            self._initializers.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def default_input(self, name: str, number: int) -> str:
        """(1,): an input that need not be given."""
        self._initializers.append(numpy_helper.from_array(np.array([number], np.int64), name))
        self._defaults.append(helper.make_tensor_value_info(name, TensorProto.INT64, [1]))
        return name

    def whole(self, *numbers: int) -> str:
        """(n,) whole numbers, such as a shape."""
        return self.constant(numbers, np.int64)

    def number(self, value: float) -> str:
        return self.constant(value)

    def side(self, value: str, axis: int) -> str:
        """(1,): the length of one axis."""
        return str(self.op("Shape", value, start=axis, end=axis + 1))

    def reshape(self, value: str, *shape: int | str) -> str:
        """0 keeps a length, -1 is what is left; a name is that of a length (1,)."""
        if any(isinstance(length, str) for length in shape):
            parts = [length if isinstance(length, str) else self.whole(length) for length in shape]
            return str(self.op("Reshape", value, self.op("Concat", *parts, axis=0)))
        return str(self.op("Reshape", value, self.whole(*(int(length) for length in shape))))

    def unsqueeze(self, value: str, *axes: int) -> str:
        return str(self.op("Unsqueeze", value, self.whole(*axes)))

    def total(self, value: str, *axes: int, keep: bool = False) -> str:
        return str(self.op("ReduceSum", value, self.whole(*axes), keepdims=int(keep)))

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any], metadata: dict[str, str]) -> ModelProto:
        graph: GraphProto = helper.make_graph(
            self._nodes, "tusk", [*inputs, *self._defaults], outputs, self._initializers
        )
        imports = [helper.make_opsetid("", OPSET)]
        model: ModelProto = helper.make_model(graph, opset_imports=imports, producer_name="tusk", ir_version=IR)
        helper.set_model_props(model, metadata)
        return model
