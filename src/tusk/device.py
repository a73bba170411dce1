"""Where a computation runs: which devices there are, and which of them is meant."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

from tusk.errors import UsageError

CPU = torch.device("cpu")
_KINDS = ("cpu", "cuda", "mps")


@dataclass(frozen=True)
class Place:
    """This process among those on its machine, as torchrun sets it."""

    local_rank: int = 0
    local_world: int = 1
    world: int = 1

    @staticmethod
    def here() -> Place:
        """From torchrun's variables; alone where there are none."""
        rank, local, world = (_number(name) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE"))
        if world is None or world < 2:
            return Place()
        return Place(rank or 0, local or 1, world)


def device_names() -> list[str]:
    """The devices of this machine, the fastest first: `cuda:0`, `cuda:1` ..., `mps`, `cpu`."""
    names = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*names, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def choose_device(asked: str | torch.device = "auto") -> torch.device:
    """'auto', 'cpu', 'cuda', 'cuda:1' or 'mps' -> the device; one that is not there is refused.

    `auto` is a GPU where there is one. Of several processes on a machine, each has the GPU of its own number.
    """
    name, there, place = str(asked), device_names(), Place.here()
    kind, colon, number = name.partition(":")
    gpus = [one for one in there if one.startswith("cuda")]
    if kind not in (*_KINDS, "auto") or (colon and not (kind == "cuda" and number.isdecimal())):
        raise UsageError(f"device '{name}'", "there is no such device", f"use auto, {_listed(there)}")
    if kind == "cpu":
        return CPU
    if kind == "auto":
        several = place.world > 1  # gloo, which joins processes elsewhere, does not know the GPU of a Mac
        kind = "cuda" if gpus else "mps" if "mps" in there and not several else "cpu"
        if kind == "cpu":
            return CPU
    if (kind == "cuda" and not gpus) or (kind == "mps" and "mps" not in there):
        raise UsageError(f"device '{name}'", "torch does not find it on this machine", f"use {_listed(there)}")
    if kind == "mps":
        if place.world > 1:
            raise UsageError("device 'mps'", "several processes cannot train on it together", "use cpu")
        return torch.device("mps")
    if place.local_world > 1 and colon:
        why = f"all {place.local_world} processes of this machine would use it"
        raise UsageError(f"device '{name}'", why, "use cuda: each process then takes a GPU of its own")
    index = int(number) if colon else place.local_rank
    if index >= len(gpus):
        if colon:
            raise UsageError(f"device '{name}'", "torch does not find it on this machine", f"use {_listed(there)}")
        why = f"there are {place.local_world} processes on this machine, but only {len(gpus)} of them can have a GPU"
        raise UsageError("torchrun", why, f"give --nproc-per-node {len(gpus)}, or --device cpu")
    return torch.device("cuda", index)


def use_device(device: torch.device) -> None:
    """What torch makes on 'the GPU' without a number is from now on made on this one."""
    if device.type == "cuda":
        torch.cuda.set_device(device)


def device_words(device: torch.device) -> str:
    """The device for people."""
    if device.type == "cuda":
        of = torch.cuda.get_device_properties(device)
        return f"{device} ({of.name}, {of.total_memory / 2**30:.0f} GB)"
    return {"cpu": f"the CPU, {torch.get_num_threads()} threads", "mps": "mps (the GPU of this Mac)"}.get(
        device.type, str(device)
    )


def has_doubles(device: torch.device) -> bool:
    """Whether the device computes in double precision."""
    return device.type != "mps"


def _number(name: str) -> int | None:
    word = os.environ.get(name, "")
    return int(word) if word.isdecimal() else None


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
