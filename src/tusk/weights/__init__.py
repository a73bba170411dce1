"""Models that come with tusk, trained by `tusk train` alone; each file's metadata says how."""

from __future__ import annotations

from pathlib import Path

from tusk.errors import DataError, nearest


def shipped_models() -> dict[str, Path]:
    """Name -> file."""
    return {file.stem: file for file in sorted(Path(__file__).parent.glob("*.safetensors"))}


def model_path(name_or_path: str | Path) -> Path:
    """The file of a shipped model (by its name), of a run's folder, or the file itself."""
    path, shipped = Path(name_or_path), shipped_models()
    if path.is_dir():
        return path / "model.safetensors"
    if not path.exists() and str(name_or_path) in shipped:
        return shipped[str(name_or_path)]
    if not path.exists() and path.suffix == "":
        raise DataError(f"model '{name_or_path}'", "there is no such model or file", nearest(path.name, shipped))
    return path
