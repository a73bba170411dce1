"""How much memory this process may still take: what the machine has free, and what a container allows."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tusk.errors import UserError

SAFE = 0.95  # of what is free: an estimate is no promise, and other programs live too


@dataclass(frozen=True)
class Memory:
    """In bytes."""

    total: int
    free: int


def machine_memory(root: Path = Path("/")) -> Memory | None:
    """What the system and every control group above this process allow; None where the system does not say."""
    machine = _of_linux(root) or _of_others()
    if machine is None:
        return None
    for limit, used in _control_groups(root):
        machine = Memory(min(machine.total, limit), min(machine.free, max(0, limit - used)))
    return machine


def check_fits(
    need: int, what: str, lower: str, processes: int = 1, *, memory: Memory | None = None, where: str = ""
) -> str:
    """In words what is needed; a UserError where that cannot fit. `processes` of this machine need as much each.

    what: the setting that is at fault; lower: what to do about it; memory: that of a GPU, by default the machine's.
    """
    memory = memory or machine_memory()
    each = f" in each of {processes} processes" if processes > 1 else ""
    if memory is None:
        return f"Needs about {gigabytes(need)} of memory{each}; how much is free, this system does not say."
    if need * processes > SAFE * memory.free:
        why = f"this needs about {gigabytes(need)} of memory{each}, and {gigabytes(memory.free)} are free{where}"
        raise UserError(what, why, lower)
    return f"Needs about {gigabytes(need)} of {gigabytes(memory.free)} of free memory{where}{each}."


def gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB"


def _of_linux(root: Path) -> Memory | None:
    try:
        text = (root / "proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    sizes = {name: int(size) << 10 for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    if "MemTotal" not in sizes or "MemAvailable" not in sizes:
        return None
    return Memory(sizes["MemTotal"], sizes["MemAvailable"])


def _of_others() -> Memory | None:
    if sys.platform == "win32":

        class Status(ctypes.Structure):
            _fields_ = (
                ("length", ctypes.c_ulong),
                ("load", ctypes.c_ulong),
                *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
            )

        status = Status(length=ctypes.sizeof(Status))
        told = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return Memory(status.total, status.free) if told else None
    else:  # noqa: RET505 - mypy reads one of the two
        # macOS tells what it could give up by a tool of its own only: all of the machine's memory passes for free.
        try:
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):
            return None
        return Memory(total, total) if total > 0 else None


def _control_groups(root: Path) -> list[tuple[int, int]]:
    """(limit, used) of each group that this process is in, of both versions, from the innermost outwards."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if kinds == "":
            mount, names = root / "sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in kinds.split(","):
            mount, names = root / "sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        inner = mount / place.lstrip("/")
        # In a container the path may be the host's, which is not to be seen from inside; then the mount is the group.
        for folder in [inner, *inner.parents]:
            pair = [_number(folder / name) for name in names]
            if pair[0] is not None and pair[1] is not None:
                found.append((pair[0], max(0, pair[1] - _reclaimable(folder))))
            if folder == mount:
                break
    return found


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None  # not there, or 'max': no limit


def _reclaimable(folder: Path) -> int:
    """Files that were read count as used, but are given up where memory is wanted."""
    try:
        text = (folder / "memory.stat").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^(?:total_)?inactive_file (\d+)$", text, re.MULTILINE)
    return int(found.group(1)) if found else 0
