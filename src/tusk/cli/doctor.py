"""`tusk doctor`: what is installed, and whether it works."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import tyro

from tusk.api.runs import prepare_torch
from tusk.cli.flags import run_with_flags
from tusk.cli.machine import (
    DISTRIBUTION,
    Machine,
    Package,
    examine_machine,
    faults_of,
    packages,
    version_line,
)
from tusk.device import choose_device
from tusk.errors import EXIT_FAILED
from tusk.machine_memory import gigabytes


def examine(*, as_json: bool, device: str = "auto") -> None:
    """Print everything; exit with 1 where something is wrong."""
    choose_device(device)
    prepare_torch()
    found, machine = packages(), examine_machine()
    if not as_json:
        for line in _lines(machine, found):
            print(line, flush=True)
    from tusk.cli.selftest import run_self_tests

    outcomes = run_self_tests(device)
    faults = faults_of(machine, found) + [outcome.words for outcome in outcomes if not outcome.well]
    if as_json:
        values = {
            "tusk": version_line(),
            "machine": asdict(machine),
            "packages": [asdict(package) for package in found],
            "self_tests": [asdict(outcome) for outcome in outcomes],
            "faults": faults,
            "well": not faults,
        }
        print(json.dumps(values, indent=1))
    else:
        for outcome in outcomes:
            if outcome.well:
                print(_line(outcome.name, outcome.words))
        print("\n".join(faults) if faults else "All is well.")
    if faults:
        sys.exit(EXIT_FAILED)


def _lines(machine: Machine, found: list[Package]) -> Iterator[str]:
    yield _line("tusk", version_line())
    yield _line("python", f"{machine.python} on {machine.system}")
    needed = [package for package in found if not package.extra]
    versions = ", ".join(f"{package.name} {package.version or 'missing'}" for package in needed)
    yield _line("packages", versions or "tusk is not installed as a package, so they are not known")
    for extra in sorted({package.extra for package in found if package.extra}):
        own = [package for package in found if package.extra == extra]
        lacking = [package.name for package in own if package.version is None]
        words = f"without {', '.join(lacking)}: pip install '{DISTRIBUTION}[{extra}]'" if lacking else "installed"
        yield _line(f"extra {extra}", words)
    yield _line("device", f"{machine.device}; there are: {', '.join(machine.devices)}")
    yield _line("cores", f"{machine.cores} to use; torch uses {machine.threads}")
    if machine.memory is not None and machine.memory_free is not None:
        yield _line("memory", f"{gigabytes(machine.memory)}, {gigabytes(machine.memory_free)} free")
    yield _line("allocator", machine.allocator)
    yield _line("disk", f"{gigabytes(machine.disk_free)} free here")
    held = ", ".join(machine.datasets) or "nothing yet ('tusk data get mnist' fetches MNIST)"
    yield _line("data", f"{machine.data_folder}: {held}")
    yield _line("models", ", ".join(machine.models) or "none")


def _line(name: str, words: str) -> str:
    return f"{name:<14}{words}"


def doctor(
    as_json: Annotated[bool, tyro.conf.arg(name="json", help="Print it as JSON.")] = False,
    device: Annotated[str, tyro.conf.arg(help="The device to try: auto, cpu, cuda, cuda:1 or mps.")] = "auto",
) -> None:
    """Examine this machine and installation, and try everything once: ten seconds."""
    examine(as_json=as_json, device=device)


def run(args: Sequence[str]) -> None:
    run_with_flags(doctor, args, "tusk doctor")
