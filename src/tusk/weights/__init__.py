"""Models that come with tusk, trained by `tusk train` alone; each file's metadata says how."""

from __future__ import annotations

from pathlib import Path


def shipped_models() -> dict[str, Path]:
    """Name -> file."""
    return {file.stem: file for file in sorted(Path(__file__).parent.glob("*.safetensors"))}
