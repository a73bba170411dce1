"""Many processes as one: the same command under torchrun, on one machine or many.

    torchrun --nproc-per-node 2 -m tusk train photos/ ...

Every process holds the same network and draws the same random numbers; each works on its own part of every batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tusk.errors import UsageError


@dataclass(frozen=True)
class Ranks:
    """This process among all."""

    rank: int = 0
    world: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and messages."""
        return self.rank == 0

    def part(self, whole: int) -> slice:
        """The places of this process's share of `whole` items."""
        share = whole // self.world
        return slice(self.rank * share, (self.rank + 1) * share)

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all processes of a tensor of one shape; gradients flow back to each."""
        if self.world == 1:
            return value
        summed: Tensor = _SumOverRanks.apply(value)  # type: ignore[no-untyped-call]
        return summed / self.world

    def gather(self, value: Tensor) -> Tensor:
        """(N, ...) of each process -> (world * N, ...), the same on all; without gradients."""
        if self.world == 1:
            return value
        parts = [torch.empty_like(value) for _ in range(self.world)]
        dist.all_gather(parts, value.contiguous())
        return torch.cat(parts)

    def all_gather_with_grad(self, value: Tensor) -> Tensor:
        """(N, ...) of each process -> (world * N, ...), the same on all; gradients flow back to each."""
        if self.world == 1:
            return value
        places = value.new_zeros(self.world, *value.shape)
        places = places.index_put((torch.tensor(self.rank, device=value.device),), value)
        summed: Tensor = _SumOverRanks.apply(places)  # type: ignore[no-untyped-call]
        return summed.flatten(0, 1)

    def broadcast(self, make: Callable[[], Any]) -> Any:
        """What `make` gives on the first process, on all of them."""
        if self.world == 1:
            return make()
        box = [make() if self.is_main else None]
        dist.broadcast_object_list(box, 0)
        return box[0]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any process."""
        if self.world == 1:
            return flag
        value = torch.tensor([float(flag)])
        dist.all_reduce(value)
        return bool(value.item() > 0)


class _SumOverRanks(torch.autograd.Function):
    """The sum over processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:  # noqa: ARG004 (torch gives it)
        summed = value.detach().clone()
        dist.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ARG004
        summed = gradients[0].clone()
        dist.all_reduce(summed)
        return summed


def join_ranks() -> Ranks:
    """Join the other processes where torchrun started this one; otherwise there is only this."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks()
    if "RANK" not in os.environ or "MASTER_ADDR" not in os.environ:
        why = f"it is {world}, but torchrun's other variables are missing"
        raise UsageError("WORLD_SIZE", why, "start the command by torchrun, or unset it")
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    store, rank, world = next(iter(dist.rendezvous("env://", timeout=timedelta(minutes=10))))  # type: ignore[attr-defined]
    # torchrun may keep one store over its restarts: names of their own keep a new process from reading the address of
    # one that was killed.
    store = dist.PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=timedelta(minutes=10))
    return Ranks(dist.get_rank(), dist.get_world_size())


def leave_ranks(*, together: bool) -> None:
    """The end of `join_ranks`; `together` waits for the others, so that none is cut off while it still sends."""
    if dist.is_available() and dist.is_initialized():
        if together:
            dist.barrier()
        dist.destroy_process_group()
