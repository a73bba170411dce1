"""What this machine and installation are like, and what is wrong with them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import tusk
from tusk.allocator import keep_memory
from tusk.data.fetch import default_data_dir
from tusk.machine_memory import gigabytes, machine_memory
from tusk.weights import shipped_models

DISTRIBUTION = "tusk-keypoints"  # its name where packages are installed; the import is `tusk`
_ENOUGH = 1 << 30  # bytes of memory and of disk that a small training wants


@dataclass(frozen=True)
class Package:
    """A package that tusk depends on."""

    name: str
    version: str | None  # None where it is not installed
    least: str  # "" where any will do
    extra: str  # "" where tusk cannot do without it

    @property
    def fits(self) -> bool:
        return self.version is not None and _numbers(self.version) >= _numbers(self.least)


@dataclass(frozen=True)
class Machine:
    """What tusk runs on."""

    system: str
    python: str
    device: str  # that is used where none is named
    devices: tuple[str, ...]  # all of them, the fastest first
    cores: int  # that this process may use
    threads: int  # that torch uses
    memory: int | None  # bytes in all; None where the system does not say
    memory_free: int | None
    allocator: str
    data_folder: str
    datasets: tuple[str, ...]
    disk_free: int  # bytes, where results would go
    models: tuple[str, ...]


def packages() -> list[Package]:
    """Those that tusk's own metadata name; none where tusk runs without being installed."""
    try:
        wanted = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = []
    for line in wanted:
        name, least, extra = parse_requirement(line)
        if name == DISTRIBUTION or extra in ("dev", "docs"):
            continue
        try:
            version: str | None = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        found.append(Package(name, version, least, extra))
    return found


def parse_requirement(line: str) -> tuple[str, str, str]:
    """`h5py>=3.10; extra == 'data'` -> name, least version, extra; the last two may be empty."""
    what, _, marker = line.partition(";")
    name = re.match(r"\s*[\w.-]+", what)
    least = re.search(r">=\s*([\w.]+)", what)
    extra = re.search(r"extra\s*==\s*['\"](\w+)['\"]", marker)
    return name.group().strip() if name else "", least.group(1) if least else "", extra.group(1) if extra else ""


def examine_machine() -> Machine:
    """What this process runs on. Torch is imported here."""
    import torch

    from tusk.device import choose_device, device_names, device_words

    folder = default_data_dir()
    memory = machine_memory()
    return Machine(
        system=platform.platform(),
        python=platform.python_version(),
        device=device_words(choose_device("auto")),
        devices=tuple(device_names()),
        cores=usable_cores(),
        threads=torch.get_num_threads(),
        memory=None if memory is None else memory.total,
        memory_free=None if memory is None else memory.free,
        allocator=allocator_words(),
        data_folder=str(folder),
        datasets=tuple(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else (),
        disk_free=shutil.disk_usage(Path.cwd()).free,
        models=tuple(shipped_models()),
    )


def faults_of(machine: Machine, found: list[Package]) -> list[str]:
    """One sentence for each thing that is wrong, with what to do."""
    faults = []
    for package in found:
        if package.version is None and not package.extra:
            faults.append(f"{package.name} is not installed: install tusk again.")
        elif package.version is not None and not package.fits:
            old = f"{package.name} {package.version} is older than tusk needs"
            faults.append(f"{old}: install {package.name} {package.least} or newer.")
    if machine.threads > machine.cores:
        faults.append(
            f"torch uses {machine.threads} threads on {machine.cores} cores, which slows it down: set "
            f"OMP_NUM_THREADS={machine.cores}, or leave it unset."
        )
    if machine.memory_free is not None and machine.memory_free < _ENOUGH:
        faults.append(f"Only {gigabytes(machine.memory_free)} of memory are free: end other programs before training.")
    if machine.disk_free < _ENOUGH:
        faults.append(f"Only {gigabytes(machine.disk_free)} of disk are free in {Path.cwd()}: make room, or use --out.")
    if not os.access(Path.cwd(), os.W_OK):
        faults.append(f"{Path.cwd()} cannot be written to: change the folder, or use --out.")
    folder = Path(machine.data_folder)
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK)):
        faults.append(f"{folder} is not a folder that can be written to: change that, or set XDG_DATA_HOME.")
    if not machine.models:
        faults.append("None of the models that come with tusk is there: install tusk again.")
    return faults


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def allocator_words() -> str:
    """Whether the C library keeps memory, and why not."""
    if keep_memory():
        return "memory is kept"
    if os.environ.get("TUSK_ALLOCATOR", "on") == "off":
        return "left as it is, since TUSK_ALLOCATOR=off"
    if platform.system() != "Linux":
        return f"left as it is, since its settings are those of Linux, not of {platform.system()}"
    return "left as it is, since the C library is not glibc"


def version_line() -> str:
    return f"tusk {tusk.__version__} in {Path(tusk.__file__).parent}"


def _numbers(version: str) -> tuple[int, ...]:
    """`2.13.0+cpu` -> (2, 13, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
