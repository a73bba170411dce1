"""Where a network runs."""

from __future__ import annotations

import torch

from tusk.errors import UsageError


def find_device(name: str) -> torch.device:
    """'cpu', 'cuda', 'cuda:1', 'mps', or 'auto' for the fastest that there is; what is not there is refused."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next((kind for kind in ("cuda", "mps") if there[kind]), "cpu")
    kind, _, number = name.partition(":")
    if kind not in there or (number and not number.isdecimal()):
        raise UsageError(f"device '{name}'", "there is no such device", "use 'cpu', 'cuda', 'cuda:1', 'mps' or 'auto'")
    if not there[kind] or (kind == "cuda" and number and int(number) >= torch.cuda.device_count()):
        raise UsageError(f"device '{name}'", "torch does not find it on this machine", "use 'cpu' or 'auto'")
    return torch.device(name)
