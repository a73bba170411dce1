"""Many processes as one: the same command under torchrun, on one machine or many.

    torchrun --nproc-per-node 2 -m tusk train photos/ ...

Every process holds the same network and draws the same random numbers; each works on its own part of every batch, on a
device of its own. Tensors on GPUs go through NCCL, all others, and whatever is no tensor, through gloo.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from tusk.errors import RefusedElsewhereError, UsageError, UserError

Result = TypeVar("Result")
# How gloo, NCCL and the store say that the other end of a connection is gone.
_LOST = ("connection closed", "connection reset", "connection refused", "broken pipe", "timed out", "socket", "gloo")


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

    def broadcast(self, make: Callable[[], Result]) -> Result:
        """What `make` gives on the first process, on all of them; what it is refused there, they are all."""
        if self.world == 1:
            return make()
        made: Result | None = None
        fault: UserError | None = None
        if self.is_main:
            try:
                made = make()
            except UserError as error:
                fault = error
        box: list[Any] = [(made, _parts(fault))]
        dist.broadcast_object_list(box, 0)
        made, refused = box[0]
        if refused is not None:
            dist.barrier()  # nobody leaves before all know
            raise fault or RefusedElsewhereError(*refused)
        return made

    def together(self, work: Callable[[], Result]) -> Result:
        """Do it on every process. Where it is refused on any, all end: the first of those says why, the others nothing.

        Without this the others would wait, or lose their connection and say that.
        """
        if self.world == 1:
            return work()
        result: Result | None = None
        fault: UserError | None = None
        try:
            result = work()
        except UserError as error:
            fault = error
        refusals: list[Any] = [None] * self.world
        dist.all_gather_object(refusals, _parts(fault))
        first = next((rank for rank, refused in enumerate(refusals) if refused is not None), None)
        if first is None:
            return result  # type: ignore[return-value]  # None only where `work` gave it
        dist.barrier()  # nobody leaves before all know
        if fault is not None and first == self.rank:
            raise fault
        raise RefusedElsewhereError(*refusals[first])

    def same(self, value: Any) -> bool:
        """Whether all processes have the same value."""
        if self.world == 1:
            return True
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value)
        return all(other == values[0] for other in values)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any process."""
        if self.world == 1:
            return flag
        value = torch.tensor([float(flag)], device="cpu")
        dist.all_reduce(value)
        return bool(value.item() > 0)


def _parts(fault: UserError | None) -> tuple[str, str, str, int] | None:
    """What `RefusedElsewhereError` is made of: exceptions themselves do not travel well."""
    return None if fault is None else (fault.what, fault.why, fault.fix, fault.exit_code)


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


def join_ranks(device: torch.device | None = None) -> Ranks:
    """Join the other processes where torchrun started this one; otherwise there is only this.

    device: where the tensors lie that they will exchange; by default on the CPU.
    """
    if not several_processes():
        return Ranks()
    words = os.environ["WORLD_SIZE"]
    if not words.isdecimal() or int(words) < 1:
        raise UsageError("WORLD_SIZE", f"'{words}' is not a number of processes", "start the command by torchrun")
    world = int(words)
    if "RANK" not in os.environ or "MASTER_ADDR" not in os.environ:
        why = f"it is {world}, but torchrun's other variables are missing"
        raise UsageError("WORLD_SIZE", why, "start the command by torchrun, or unset it")
    # DistributedDataParallel imports it, and its functions keep the group of that moment as a default: then the group,
    # and gloo's threads with it, would outlive `leave_ranks`. Before there is one, the default is None.
    importlib.import_module("torch.distributed.nn.functional")
    backend = backend_for(device)
    store, rank, world = next(iter(dist.rendezvous("env://", timeout=timedelta(minutes=10))))  # type: ignore[attr-defined]
    # torchrun may keep one store over its restarts: names of their own keep a new process from reading the address of
    # one that was killed.
    store = dist.PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=timedelta(minutes=10))
    return Ranks(dist.get_rank(), dist.get_world_size())


def backend_for(device: torch.device | None) -> str:
    """NCCL knows tensors on GPUs alone, and a flag or a text does not lie there: so both are joined."""
    return "gloo" if device is None or device.type != "cuda" else "cpu:gloo,cuda:nccl"


def leave_ranks(*, together: bool) -> None:
    """The end of `join_ranks`; `together` waits for the others, so that none is cut off while it still sends.

    gloo's threads end with the last reference to their group, not with `destroy_process_group`. One that is left may
    release its last tensors while the interpreter is being shut down, and that aborts the process ("terminate called
    without an active exception"). DistributedDataParallel refers to the group, and to itself: it has to be collected
    before, with the trainer, which after an error the frames of its traceback still hold.
    """
    if dist.is_available() and dist.is_initialized():
        if together:
            dist.barrier()
        error = sys.exception()
        while error is not None:
            traceback.clear_frames(error.__traceback__)
            error = error.__context__
        gc.collect()
        # Last, as it waits for the threads without holding the interpreter, which they may need to come to their end.
        dist.destroy_process_group()


def several_processes() -> bool:
    """Whether torchrun, or whatever sets its variables, started more than this process."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1")


def refuse_together(fault: UserError) -> NoReturn:
    """End with a fault that was found before the processes joined, so that all end, and one of them says why."""

    def refuse() -> NoReturn:
        raise fault

    ranks = join_ranks()
    try:
        ranks.together(refuse)
    finally:
        leave_ranks(together=False)


def lost_process(error: RuntimeError, ranks: Ranks, folder: Path | None) -> UserError | None:
    """One sentence for what torch says when another process is gone; None for any other error."""
    words = str(error).lower()
    if ranks.world == 1 or not (isinstance(error, dist.DistError) or any(sign in words for sign in _LOST)):
        return None
    fix = "see what it said, and start it again" if folder is None else f"see what it said; --resume {folder} goes on"
    return UserError("torchrun", f"another of the {ranks.world} processes ended", fix)


def launch_name() -> str | None:
    """What tells this start of torchrun from all others, and stays the same when it restarts its processes.

    torchrun makes a new folder for the logs of each start, which it names here; its own id is often 'none'.
    """
    file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if file is None or len(Path(file).parents) < 3:
        return None
    return f"{socket.gethostname()} {os.environ.get('TORCHELASTIC_RUN_ID', '')} {Path(file).parents[2]}"


def is_restart() -> bool:
    """Whether torchrun started this process again after one had died."""
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return count.isdecimal() and int(count) > 0
