"""`tusk presets`: their names."""

from __future__ import annotations

from collections.abc import Sequence

from tusk.cli.flags import run_with_flags
from tusk.presets import preset_names


def presets() -> None:
    """List the presets."""
    print("\n".join(preset_names()))


def run(args: Sequence[str]) -> None:
    run_with_flags(presets, args, "tusk presets")
