"""A second device without a GPU: tensors that say they lie on `pretend`, and refuse to meet those of the CPU.

Each holds an ordinary tensor, with which everything is really computed, so that values, gradients and whatever depends
on data are what they are on the CPU. As on a GPU,

- an operation on tensors of both devices is an error, but for single numbers on the CPU;
- `.numpy()` of a tensor on the device is an error, `.cpu()` and `.tolist()` copy it;
- what is made without a device lies on the CPU, and so meets an error later on.

Stricter than a GPU: indexing with tensors of the CPU is an error too, since there it waits for a copy.

    with pretend_device() as device:
        trainer = Trainer(config, device=device)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
_COPIES = ("aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize")


class MixedDevicesError(AssertionError):
    """Tensors of two devices met."""


class PretendTensor(Tensor):
    """A tensor on the pretended device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> PretendTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=torch.device(NAME, 0),
            requires_grad=False,
        )
        made.held = held
        return made

    def __init__(self, held: Tensor) -> None:
        del held

    def __repr__(self, **_: Any) -> str:
        return f"PretendTensor({self.held!r})"

    def tolist(self) -> Any:
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


class _Pretend(TorchDispatchMode):
    """Sees every operation, also those that make tensors."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


def _run(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given = [value for value in tree_iter((args, kwargs)) if isinstance(value, Tensor)]
    ours = [value for value in given if isinstance(value, PretendTensor)]
    others = [value for value in given if not isinstance(value, PretendTensor) and value.dim() > 0]
    name = function._schema.name
    if ours and others and name not in _COPIES:
        shapes = [tuple(value.shape) for value in others]
        raise MixedDevicesError(f"{function}: tensors on '{NAME}' meet tensors on the CPU of shapes {shapes}")
    asked = kwargs.get("device")
    wanted = bool(ours) if asked is None else torch.device(asked).type == NAME
    if name == "aten::copy_":
        wanted = isinstance(args[0], PretendTensor)
    held = {id(value.held): value for value in ours}
    plain_args, plain_kwargs = tree_map(_held, (args, kwargs))
    if asked is not None:
        plain_kwargs["device"] = torch.device("cpu")
    plain_kwargs.pop("pin_memory", None)
    result = function(*plain_args, **plain_kwargs)

    def wrapped(value: Any) -> Any:
        if not isinstance(value, Tensor) or isinstance(value, PretendTensor):
            return value
        if id(value) in held:
            return held[id(value)]  # what was changed in place
        if not wanted:
            return value
        # A copy to another device is never the tensor itself.
        crossed = name == "aten::_to_copy" and not ours and any(value is one for one in given)
        return PretendTensor(value.clone() if crossed else value)

    return tree_map(wrapped, result)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, PretendTensor) else value


def _empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> Tensor:
    return PretendTensor(torch.empty_strided(size, stride, dtype=dtype or torch.get_default_dtype(), device="cpu"))


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    del non_blocking
    _held(target).copy_(_held(source))
    return target


# Once and for all, before the first gradient: torch counts its devices there. So it is imported by processes that do
# nothing else (`test_devices_meet.py`).
_setup_privateuseone_for_python_backend(NAME)
# `torch.tensor(..., device=...)` and `new_tensor` come here, without being seen by the mode.
_library = torch.library.Library("aten", "IMPL")
_library.impl("empty_strided", _empty_strided, "PrivateUse1")
_library.impl("_copy_from", _copy_from, "PrivateUse1")


@contextmanager
def pretend_device() -> Iterator[torch.device]:
    """Within it there is a device of that name."""
    with _Pretend():
        yield torch.device(NAME, 0)
